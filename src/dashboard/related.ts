/** What stands below a record, besides its fields: the lists and the views that people look at together with it. */
import type { Problem } from '../core/values/problem.ts';
import { type Html, html } from '../pages/html.ts';
import type { Use } from '../pages/run.ts';
import { listTitle, paramsOf, schemaOf } from './catalog.ts';
import { addressOf, listTable } from './list_page.ts';
import { recordFacts } from './record_page.ts';
import { mayDo } from './roles.ts';
import type { Record_ } from './values.ts';
import type { DashboardVisit } from './visit.ts';

/** By the noun of the record: an operation below it, or a list with the filter that narrows it to the record. */
const related: Record<string, string[]> = {
  partners: [
    'links.list partner_id',
    'coupons.list partner_id',
    'sales.list partner_id',
    'commissions.list partner_id',
    'payouts.list partner_id',
    'applications.list partner_id',
    'risk_flags.list partner_id',
    'partners.get_payout_method',
    'partners.get_tax_form',
  ],
  customers: ['sales.list customer_id', 'commissions.list customer_id', 'risk_flags.list customer_id'],
  sales: ['sales.explain', 'commissions.list sale_id', 'refunds.list sale_id', 'disputes.list sale_id'],
  payout_batches: ['payouts.list batch_id', 'payout_batches.list_reports'],
  payouts: ['commissions.list payout_id'],
  links: ['sales.list link_id', 'referrals.list link_id'],
  referrals: ['clicks.list referral_id', 'sales.list referral_id'],
  groups: ['partners.list group_id', 'coupons.list group_id'],
  tags: ['partners.list tag_id'],
  webhook_endpoints: ['webhook_endpoints.deliveries'],
  recruitment_webhook_endpoints: ['recruitment_webhook_endpoints.deliveries'],
  prospects: ['prospects.messages', 'notes.list', 'emails.list', 'prospects.activity', 'deals.list prospect_id'],
  threads: ['threads.messages'],
  campaigns: ['campaigns.stats', 'sequences.list campaign_id', 'campaign_additions.list campaign_id'],
  sequences: ['messages.list sequence_id'],
  searches: ['searches.results'],
  imports: ['imports.list_errors'],
  inboxes: ['inboxes.health'],
  deals: ['deals.versions'],
  programs: ['processors.list', 'rails.list'],
  users: ['api_keys.list user_id', 'audit_log.list user_id'],
};

const few = 10;

/** Reads and draws what stands below a record, as far as the role may see it. A view that the record does not have is left out. */
export async function relatedContent(visit: DashboardVisit, use: Use, tag: string, record: Record_): Promise<Html> {
  const parts: Html[] = [];
  for (const line of related[tag] ?? []) {
    const [name = '', filter] = line.split(' ');
    const operation = visit.catalog.operations.get(name);
    if (!operation || !mayDo(visit.role, operation.scope)) continue;
    const { properties = {} } = schemaOf(operation, 'query');
    const id = String(record.id);
    const query = {
      ...(filter ? { [filter]: id } : {}),
      ...(properties.program_id && typeof record.program_id === 'string' ? { program_id: record.program_id } : {}),
      ...(properties.limit ? { limit: few } : {}),
    };
    const params = Object.fromEntries(paramsOf(operation).map((param) => [param, id]));
    const answer = await use(name, { params, query }).catch((problem: Problem) => {
      if (problem.status === 404 || problem.status === 400 || problem.status === 409) return undefined;
      throw problem;
    });
    if (answer === undefined || answer === null) continue;
    const all = `${addressOf(visit.catalog, operation)}?${new URLSearchParams({ ...params, ...(filter ? { [filter]: id } : {}) })}`;
    const title = filter || name.endsWith('.list') ? listTitle(operation.tag) : operation.summary.replace(/\.$/, '');
    const is_list = Array.isArray(answer.data);
    const content = is_list ? listTable(visit, operation, answer.data, 'None yet.') : recordFacts(visit, answer);
    parts.push(
      html`<h2>${title}</h2>${content}${is_list && answer.has_more && html`<p><a href="${all}">All ${answer.total_count}</a></p>`}`,
    );
  }
  return html`${parts}`;
}
