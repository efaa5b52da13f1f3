/** The operations that the state of a record allows: a page has no button for what would be refused. The operation refuses it all the same. */
import { commission_states } from '../program/commissions/commission_state.ts';
import { payout_states } from '../program/payouts/payout_state.ts';
import { deal_states } from '../recruitment/deals/states.ts';
import type { Record_ } from './values.ts';

type Table = Readonly<Record<string, { on: Partial<Record<string, string>> }>>;

/** The tables of states, and how they call an operation that has another name there. */
const states: Record<string, [table: Table, called?: Record<string, string>]> = {
  commissions: [commission_states, { update: 'edit' }],
  payouts: [payout_states],
  deals: [deal_states, { update: 'revise' }],
};

/** Records with few states: the condition that an operation needs. */
const conditions: Record<string, (record: Record_) => boolean> = {
  'applications.approve': ({ status }) => status === 'pending',
  'applications.reject': ({ status }) => status === 'pending',
  'applications.withdraw': ({ status }) => status === 'pending',
  'disputes.close': ({ status }) => status === 'open',
  'sale_claims.resolve': ({ status }) => status === 'open',
  'sales.refund': ({ status }) => status !== 'refunded',
  'refunds.reverse': ({ reversed_at }) => reversed_at === null || reversed_at === undefined,
  'payout_batches.approve': ({ status }) => status === 'awaiting_approval',
  'payout_batches.send': ({ status }) => status === 'ready',
  'payout_batches.mark_paid': ({ status }) => status === 'ready',
  'payout_batches.take_in_report': ({ files }) => Array.isArray(files) && files.length > 0,
  'payout_batches.delete': ({ status }) => status !== 'completed',
  'api_keys.revoke': ({ status }) => status === 'active',
  'api_keys.rotate': ({ status }) => status === 'active',
  'publishable_keys.revoke': ({ revoked_at }) => revoked_at === null,
  'prospects.do_not_contact': ({ do_not_contact }) => do_not_contact === null,
  'prospects.lift_do_not_contact': ({ do_not_contact }) => do_not_contact !== null,
  'prospects.invite': ({ signed_up_at }) => signed_up_at === null,
  'prospects.signed_up': ({ signed_up_at }) => signed_up_at === null,
  'prospects.reply': ({ stage }) => stage !== 'found',
  'prospects.save': ({ saved }) => saved === false,
  'prospects.unsave': ({ saved }) => saved === true,
  'prospects.hide': ({ hidden }) => hidden === false,
  'prospects.unhide': ({ hidden }) => hidden === true,
  'searches.cancel': ({ state }) => state === 'queued' || state === 'running',
  'processor_events.retry': ({ status }) => status === 'failed',
};

/** Returns whether the state of a record allows an operation, as far as the dashboard knows. */
export function isPossible(operation: string, record: Record_): boolean {
  const condition = conditions[operation];
  if (condition) return condition(record);
  const [tag = '', verb = ''] = operation.split('.');
  // A commission is locked while it is in a payout.
  if (tag === 'commissions' && record.status !== 'paid' && typeof record.payout_id === 'string') return false;
  const [table, called = {}] = states[tag] ?? [];
  const state = table?.[String(record.status)];
  return state === undefined || state.on[called[verb] ?? verb] !== undefined;
}
