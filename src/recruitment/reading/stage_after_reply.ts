import type { Stage } from '../events/fields.ts';
import type { ReplyKind } from '../sequences/message.ts';

const wins: ReplyKind[] = ['positive', 'question'];
const losses: ReplyKind[] = ['negative', 'angry'];

/**
 * Where a reply moves a prospect: "reply → replied (not_now, wrong_person too), positive or question → interested, also out of lost; negative, angry
 * or an unsubscribe → lost"; forward alone, and never out of agreed or active.
 */
export function stageAfterReply(stage: Stage, reply_kind: ReplyKind): Stage {
  if (stage === 'agreed' || stage === 'active') return stage;
  if (losses.includes(reply_kind)) return 'lost';
  if (wins.includes(reply_kind)) return stage === 'negotiating' ? stage : 'interested';
  return stage === 'found' || stage === 'contacted' ? 'replied' : stage;
}
