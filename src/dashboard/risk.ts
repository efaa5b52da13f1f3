/** The risk queue: flags that wait for a person, one at a time, with what raised them and the two ways to close them. */
import { counted, time, words } from '../pages/format.ts';
import { type Html, html } from '../pages/html.ts';
import type { Use } from '../pages/run.ts';
import { facts, table } from '../pages/table.ts';
import { queryOf } from './list_page.ts';
import { postForm } from './post_form.ts';
import { mayDo } from './roles.ts';
import { hrefOf, type Record_, shortId, shown } from './values.ts';
import { type DashboardVisit, readPage } from './visit.ts';

const few = 10;

/** Says in a sentence what each rule noticed. */
const meanings: Record<string, string> = {
  self_referral: 'The customer has the email address of the partner, or signed up from the partner’s browser.',
  same_ip: 'Many customers of the partner have the same IP address.',
  click_velocity: 'Many clicks came from one IP address within a short time.',
  conversion_velocity: 'Many first sales came within a short time.',
  disposable_email: 'The customer used a disposable email address.',
  blocked_country: 'A click came from a country that the program blocks.',
  paid_ad_traffic: 'A click came from a paid ad.',
  refund_rate: 'A large part of the partner’s sales was refunded.',
  duplicate_partner: 'Another partner has the same email address.',
  double_payout: 'A payout was paid twice, or after it was deleted. A clawback carries the excess.',
  dispute: 'The customer disputed a charge at their bank.',
};

export async function riskPage(visit: DashboardVisit) {
  const { after } = queryOf(visit.request.query);
  const { open, content, chosen } = await readPage(visit, async (use, { program_id }) => {
    if (program_id === undefined) return { open: undefined, content: undefined };
    const query = { program_id, status: 'open', limit: few + 1, expand: ['partner', 'customer'] };
    const open: { data: Record_[]; total_count: number; has_more: boolean } = await use('risk_flags.list', {
      query: after === undefined ? query : { ...query, starting_after: after },
    });
    const [first] = open.data;
    return { open, content: first && (await flagWith(visit, first, use, '/dashboard/risk')) };
  });
  const [first, ...others] = open?.data ?? [];
  const title = 'Risk queue';
  if (!open || !first || !content)
    return {
      title,
      chosen,
      content: html`<p class="none">${after === undefined ? 'No flag waits for a decision.' : html`No other flag waits. <a href="/dashboard/risk">Begin again</a>`}</p>`,
    };
  return {
    title,
    chosen,
    content: html`<p>${counted(open.total_count, visit.reader)} open, the newest first. ${others.length > 0 && html`<a href="/dashboard/risk?after=${first.id}">Leave this one open, and show the next</a>`}</p>
<section class="card" aria-labelledby="flag"><h2 id="flag"><a href="/dashboard/risk_flags/${first.id}">${words(String(first.kind))}</a></h2>${content}</section>
<h2>Next</h2>${waiting(visit, others.slice(0, few))}`,
  };
}

const waiting = (visit: DashboardVisit, flags: Record_[]): Html =>
  table(
    'Flags that wait',
    [
      { title: 'Flag', cell: ({ id, kind }) => html`<a href="/dashboard/risk_flags/${id}">${words(String(kind))}</a>` },
      { title: 'Severity', cell: (row) => shown(visit, 'severity', row.severity, row) },
      { title: 'Partner', cell: (row) => shown(visit, 'partner_id', row.partner_id, row, true) },
      { title: 'Customer', cell: (row) => shown(visit, 'customer_id', row.customer_id, row, true) },
      { title: 'Raised', cell: ({ created_at }) => time(String(created_at), visit.reader) },
    ],
    flags,
    'No other flag waits.',
  );

/** The page of a flag. */
export const flagContent = (visit: DashboardVisit, record: Record_, use: Use): Promise<Html> =>
  flagWith(visit, record, use, `/dashboard/risk_flags/${record.id}`);

async function flagWith(visit: DashboardVisit, flag: Record_, use: Use, back: string): Promise<Html> {
  const { partner_id, program_id } = flag;
  const others: { data: Record_[] } | undefined = partner_id
    ? await use('risk_flags.list', { query: { program_id, partner_id, limit: few + 1 } })
    : undefined;
  const more = (others?.data ?? []).filter(({ id }) => id !== flag.id);
  return html`<p>${meanings[String(flag.kind)]}</p>
${facts([
  ['Severity', shown(visit, 'severity', flag.severity, flag)],
  ['Raised', time(String(flag.created_at), visit.reader)],
  ...who(visit, flag, 'partner'),
  ...who(visit, flag, 'customer'),
  ...evidenceOf(visit, flag),
  ...(flag.status === 'open' ? [] : resolution(visit, flag)),
])}
${flag.status === 'open' && resolving(visit, String(flag.id), back)}
${partner_id && next(visit, String(partner_id))}
${more.length > 0 && html`<p>Other flags of this partner: ${more.map(({ id, kind, status }, nth) => html`${nth > 0 && ', '}<a href="/dashboard/risk_flags/${id}">${words(String(kind))}</a> (${status})`)}.</p>`}`;
}

/** The partner or the customer with what tells them apart. */
function who(visit: DashboardVisit, flag: Record_, name: 'partner' | 'customer'): [string, unknown][] {
  const id = flag[`${name}_id`];
  if (typeof id !== 'string') return [];
  const { email, status } = (flag[name] ?? {}) as Record_;
  return [
    [
      words(name),
      html`<a href="/dashboard/${name}s/${id}">${email ?? shortId(id)}</a>${status && html` ${shown(visit, 'status', status, flag)}`}`,
    ],
  ];
}

const evidenceOf = (visit: DashboardVisit, { evidence }: Record_): [string, unknown][] =>
  Object.entries((evidence ?? {}) as Record_).map(([name, value]) => {
    const href = hrefOf(visit.catalog, String(value));
    return [
      words(name.replace(/_id$/, '')),
      href ? html`<a href="${href}">Show it</a>` : shown(visit, name, value, evidence as Record_),
    ];
  });

const resolution = (visit: DashboardVisit, flag: Record_): [string, unknown][] =>
  ['status', 'note', 'resolved_by', 'resolved_at'].map((name) => [words(name), shown(visit, name, flag[name], flag)]);

const resolving = (visit: DashboardVisit, id: string, back: string): Html | false =>
  postForm(visit, 'risk_flags.resolve', {
    params: { id },
    back,
    is_stacked: true,
    content: html`<div class="field"><label for="note">Why you confirm or dismiss it</label><p class="hint" id="note-hint">Your team reads this later. The flag itself changes no commission.</p><textarea id="note" name="note" required maxlength="2000" aria-describedby="note-hint"></textarea></div>
<div class="buttons"><button class="danger" name="resolution" value="confirmed">Confirm the suspicion</button> <button class="plain" name="resolution" value="dismissed">Dismiss it</button></div>`,
  });

/** The operations on a partner besides closing the flag. */
const next = ({ role }: DashboardVisit, partner_id: string): Html =>
  html`<p>${mayDo(role, 'partners:write') && html`<a href="/dashboard/do/partners.update?id=${partner_id}&amp;status=suspended">Suspend the partner</a> · `}<a href="/dashboard/commissions?partner_id=${partner_id}">Commissions of the partner</a>, which can be put on hold</p>`;
