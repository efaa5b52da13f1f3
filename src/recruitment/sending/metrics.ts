/** What a worker counts of the emails it sends. */
import { counter } from '../../core/metrics/registry.ts';
import type { Rest } from './claim.ts';

const emails = counter(
  'rail_outreach_emails_total',
  'Attempts to send an email, by what came of them: accepted, answered (refused, for now or for good), held (stopped before the final dot), lost (before it), unknown (after it), auth, unreachable, unusable.',
  ['outcome'],
);
const rests = counter(
  'rail_outreach_rests_total',
  'Times that an inbox had to wait: for its gap, its cap, the plan, or because nothing was due.',
  ['reason'],
);
const look_ups = counter(
  'rail_outreach_look_ups_total',
  'Emails that may have been sent and were looked for in the mailbox: found, missing, or the mailbox could not be searched (unreadable).',
  ['outcome'],
);

/** An attempt has ended. */
export const emailEnded = ({ is }: { is: string }): void => emails.inc({ outcome: is });

/** A lane has nothing to send for now. */
export const laneRested = (reason: Rest): void => rests.inc({ reason });

export const lookedUp = (outcome: 'found' | 'missing' | 'unreadable'): void => look_ups.inc({ outcome });
