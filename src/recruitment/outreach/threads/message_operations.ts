import sql from 'sql-template-tag';
import { z } from 'zod';
import { nestedListOperation } from '../../../core/resource/nested_list.ts';
import { idParams, type Operation, operation, readOperations } from '../../../core/resource/operation.ts';
import { actorOf } from '../../brands/acting.ts';
import { base_path } from '../../events/base_path.ts';
import { prospects } from '../../prospects/prospect.ts';
import { messages, reply_kind } from '../../sequences/message.ts';
import { filters } from './filters.ts';
import { reclassify } from './reclassify.ts';

export const messageOperations: Operation[] = [
  ...readOperations({
    resource: messages,
    by: [
      ...['brand_id', 'prospect_id', 'campaign_id', 'sequence_id', 'thread_id', 'inbox_id'],
      ...['direction', 'purpose', 'state', 'reply_kind'],
    ],
    filters,
  }),
  operation({
    name: 'messages.reclassify',
    title: 'Correct the kind of a reply',
    method: 'POST',
    path: `${base_path}/messages/{id}/reclassify`,
    scope: 'messages:write',
    summary: 'Corrects the kind of a reply, or of what was taken for an automatic reply or an unsubscribe.',
    doc: '`needs_review` is false afterwards, and `confidence` is 1. If it is the last reply of the prospect, the stage follows, which emits `affiliate.stage_changed`. `reply.received` is not emitted again. If the service had read an unsubscribe or anger in the text, what followed from it is lifted: the prospect can be emailed again, unless something else bars them. A message that was taken for an unsubscribe or an automatic reply becomes a reply, which emits `reply.received`; its sequence is not resumed. An unsubscribe by link, one-click or mailto cannot be taken back: it answers 409, as any other message that is not a reply does. No one is marked Do not contact.',
    params: idParams,
    body: z.strictObject({ reply_kind }),
    reply: messages.schema,
    errors: ['invalid_state_transition'],
    run: async ({ tx, params, body, caller, services: { vault } }) =>
      reclassify(tx, vault, params.id, body.reply_kind, await actorOf(tx, caller)),
  }),
  nestedListOperation(
    {
      name: 'prospects.messages',
      title: 'List the messages of a prospect',
      path: `${base_path}/prospects/{id}/messages`,
      scope: 'messages:read',
      summary: 'Lists the emails to a prospect and those that answer them, newest first.',
      errors: ['sample_prospect'],
    },
    {
      of: { resource: messages, by: ['direction', 'purpose', 'state', 'reply_kind'], filters },
      parent: ({ tx }, id) => prospects.get(tx, id),
      where: (prospect_id) => sql`t.prospect_id = ${prospect_id}`,
    },
  ),
];
