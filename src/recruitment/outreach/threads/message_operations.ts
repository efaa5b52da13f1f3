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
    summary: 'Corrects the kind of a reply.',
    doc: '`needs_review` is false afterwards, and `confidence` is 1. If it is the last reply of the prospect, the stage follows, which emits `affiliate.stage_changed`. `reply.received` is not emitted again, and no one is marked Do not contact. A message that is not a reply answers 409.',
    params: idParams,
    body: z.strictObject({ reply_kind }),
    reply: messages.schema,
    errors: ['invalid_state_transition'],
    run: async ({ tx, params, body, caller }) => reclassify(tx, params.id, body.reply_kind, await actorOf(tx, caller)),
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
