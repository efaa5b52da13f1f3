/** Why a campaign is paused: pure values. */
import type { PauseCause, PauseReason } from './campaign.ts';

const causes_in_order: PauseCause[] = ['user', 'guard', 'plan', 'inbox'];
const guard_reasons: PauseReason[] = ['bounce_rate', 'spam_complaint'];

/** Causes are a set, always in the same order. */
export const withCause = (causes: PauseCause[], added: PauseCause): PauseCause[] =>
  causes_in_order.filter((cause) => cause === added || causes.includes(cause));

export const withoutCauses = (causes: PauseCause[], removed: PauseCause[]): PauseCause[] =>
  causes.filter((cause) => !removed.includes(cause));

/** The reason that is shown: that of the guard, which only a person takes away, before those of the plan and the inboxes. Null: a person's pause. */
export function reasonOf(causes: PauseCause[], known: PauseReason | null): PauseReason | null {
  if (causes.includes('guard') && known !== null && guard_reasons.includes(known)) return known;
  if (causes.includes('plan')) return 'not_entitled';
  return causes.includes('inbox') ? 'no_inbox' : null;
}
