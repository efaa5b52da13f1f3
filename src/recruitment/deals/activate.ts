/** Makes an agreed deal a partner of the affiliate program: asked for by a request, done by a job in one transaction. */
import sql from 'sql-template-tag';
import type { Vault } from '../../core/encryption/vault.ts';
import type { TaskContext } from '../../core/jobs/worker_context.ts';
import { type Tx, transaction } from '../../core/postgres/transaction.ts';
import { idParams, type Operation, operation } from '../../core/resource/operation.ts';
import { lockOf, tenant } from '../../core/resource/resource.ts';
import { transition } from '../../core/resource/states.ts';
import { ActivationRefused, activatePartner, type RefusedActivation } from '../../program/activation.ts';
import { type Actor, actorOf } from '../brands/acting.ts';
import { normaliseAddress } from '../contact/address.ts';
import { addressesOf } from '../contact/email_address.ts';
import { base_path } from '../events/base_path.ts';
import { event } from '../events/event.ts';
import { type Prospect, prospects } from '../prospects/prospect.ts';
import { moveStage } from '../prospects/stage.ts';
import { type Deal, deals } from './deal.ts';
import { lockedUnlessErased, record } from './deal_operations.ts';
import { deal_states } from './states.ts';

export const activateOperations: Operation[] = [
  operation({
    name: 'deals.activate',
    method: 'POST',
    path: `${base_path}/deals/{id}/activate`,
    scope: 'deals:write',
    summary: 'Makes the prospect of an agreed deal a partner of the program. It runs as a job.',
    doc: 'If a partner of the program has an email address of the prospect, in any spelling (letter case and plus tags are ignored, and dots at Gmail), that partner is used; otherwise a partner is created. The partner gets a commission rule with the agreed terms, and the group, the coupon and the upfront fee that were agreed. The rule takes precedence over other rules that name the partner, but not over the `rate_override` of a link. The rule of an earlier deal with the partner is deactivated; if the agreed terms start later, it applies until then. A coupon of a deleted partner is given to the partner. Either everything is done or nothing: if the activation fails, the deal is `agreed` again, with `last_error`. Emits `affiliate.created` for a new partner, then `affiliate.activated` and `affiliate.stage_changed`. A repeated request does not activate the deal again.',
    params: idParams,
    reply: deals.schema,
    status: 202,
    errors: ['invalid_state_transition'],
    async run({ tx, params, caller }) {
      const deal = await deals.get(tx, params.id, { lock: true });
      const status = transition(deal_states, deal.status, 'activate');
      if (status === 'active') return deal;
      const { id: deal_id, agreed_version: version } = deal;
      const { organization_id, request_id } = tx;
      const payload = { organization_id, request_id, deal_id, version };
      tx.enqueue('recruitment/activate_deal', payload, { job_key: `deal:${deal_id}:v${version}` });
      if (status === deal.status) return deal;
      const { user_id, member_id } = await actorOf(tx, caller);
      const by = { activated_by_user_id: user_id, activated_by_member_id: member_id };
      return deals.update(tx, deal_id, { status, last_error: null, ...by });
    },
  }),
];

interface Asked {
  organization_id: string;
  request_id: string | null;
  deal_id: string;
  version: number;
}

/** Does what was asked, unless it is done or no longer wanted. Where it is refused, the deal is agreed again, with the reason. */
export async function activateDeal(
  { deal_id, version, ...opening }: Asked,
  { store, services }: Pick<TaskContext, 'store' | 'services'>,
): Promise<void> {
  try {
    await transaction(store, opening, (tx) => activate(tx, services.vault, deal_id, version));
  } catch (error) {
    if (!(error instanceof ActivationRefused)) throw error;
    await transaction(store, opening, (tx) => giveBack(tx, deal_id, version, error.reason));
  }
}

async function activate(tx: Tx, vault: Vault, deal_id: string, version: number): Promise<void> {
  const waiting = await waitingDeal(tx, deal_id, version);
  if (!waiting) return;
  const { deal, prospect, by } = waiting;
  const { program_id, terms } = deal;
  const activated = await activatePartner(tx, {
    ...{ program_id, terms, partner_id: prospect.partner_id, emails: await usableEmails(tx, vault, prospect) },
    isSameMailbox: (one, other) => normaliseAddress(one) === normaliseAddress(other),
    profile: profileOf(prospect),
  });
  const status = transition(deal_states, deal.status, 'succeed');
  await deals.update(tx, deal_id, { ...activated, status, activated_at: tx.now });
  const { partner_id, rule_id, linked_existing } = activated;
  const kind = terms.rate_type === 'percent' ? 'Percent' : 'Fixed';
  tx.emit(
    event('affiliate.activated', tx.organization_id, {
      ...{ deal_id, prospect_id: prospect.id, program_id, partner_id, rule_id, linked_existing },
      terms_summary: `${kind} commission rule, deal version ${version}`,
    }),
  );
  record(tx, 'activated', deal, by, { version, partner_id });
  const joined = await prospects.update(tx, prospect.id, { partner_id });
  await moveStage(tx, joined, { to: 'active', reason: 'activated', by });
}

interface Waiting {
  deal: Deal;
  prospect: Prospect;
  by: Actor;
}

/** The deal that waits for its activation at this version, locked with its prospect; undefined where it does not, or was erased. */
async function waitingDeal(tx: Tx, deal_id: string, version: number): Promise<Waiting | undefined> {
  const found = await lockedUnlessErased(tx, deal_id);
  if (!found) return undefined;
  const { deal, prospect } = found;
  if (deal.status !== 'activating' || deal.agreed_version !== version) return undefined;
  const by = await tx.one<Actor>(sql`
    select t.activated_by_user_id as user_id, t.activated_by_member_id as member_id
    from recruitment.deal t
    where ${tenant(tx)} and t.id = ${deal_id}`);
  return { deal, prospect, by };
}

async function usableEmails(tx: Tx, vault: Vault, { id: prospect_id }: Prospect): Promise<string[]> {
  const known = await addressesOf(tx, vault, prospect_id);
  return known
    .filter(({ verification, bounced_at }) => verification !== 'invalid' && bounced_at === null)
    .map(({ email }) => email);
}

const profileOf = ({ name, url, country_code }: Prospect) => ({
  display_name: name?.slice(0, 200) ?? null,
  website_url: url,
  country_code,
});

async function giveBack(tx: Tx, deal_id: string, version: number, last_error: RefusedActivation): Promise<void> {
  const deal = await deals.find(tx, sql`${tenant(tx)} and t.id = ${deal_id}`, lockOf(true));
  if (deal?.status !== 'activating' || deal.agreed_version !== version) return;
  await deals.update(tx, deal_id, { status: transition(deal_states, deal.status, 'fail'), last_error });
}
