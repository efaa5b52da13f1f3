/** Lists threads and messages over REST, corrects the kind of a reply, and sends an email again. */
import sql from 'sql-template-tag';
import { z } from 'zod';
import type { Filter } from '../../core/resource/list_query.ts';
import { nestedListOperation } from '../../core/resource/nested_list.ts';
import { idParams, type Operation, operation, readOperations } from '../../core/resource/operation.ts';
import { actorOf } from '../brands/acting.ts';
import { brands } from '../brands/brand.ts';
import { base_path } from '../events/base_path.ts';
import { prospects } from '../prospects/prospect.ts';
import { messages, reply_kind } from '../sequences/message.ts';
import { threads } from '../sequences/thread.ts';

/** The filters of lists of messages and threads besides equality. */
const filters: Record<string, Filter> = {
  needs_review: {
    schema: z.enum(['true', 'false']).optional().describe('Returns only objects with this `needs_review`.'),
    // A part of the statement, as the index of those to review has it.
    where: (value: string) => (value === 'true' ? sql`t.needs_review` : sql`not t.needs_review`),
  },
};

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
    async run({ tx, params, body, caller, services: { vault } }) {
      const { reclassify } = await import('./reclassify.ts');
      return reclassify(tx, vault, params.id, body.reply_kind, await actorOf(tx, caller));
    },
  }),
  operation({
    name: 'messages.resend',
    title: 'Send an email again',
    method: 'POST',
    path: `${base_path}/messages/{id}/resend`,
    scope: 'messages:write',
    summary: 'Sends an email again whose state is `unknown`, once.',
    doc: 'The prospect may get it twice: search the mailbox first. The email is queued with a new `Message-ID`, and is sent under the same rules as the first time: the limits and the schedule of its campaign and inbox hold, and a pause holds it. A sequence that was held because of it goes on. While the email is queued, a repeated request changes nothing. If the prospect or the address is barred, or the prospect unsubscribed, the response is 409 `suppressed`. It is 409 `invalid_state_transition` if the email has another state, if its sequence has ended or has sent a later email, or if its inbox was deleted.',
    params: idParams,
    reply: messages.schema,
    status: 202,
    errors: ['suppressed', 'invalid_state_transition'],
    async run({ tx, params, services: { vault } }) {
      const { resend } = await import('./resend.ts');
      return resend(tx, vault, params.id);
    },
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

export const threadOperations: Operation[] = [
  ...readOperations({
    resource: threads,
    within: brands,
    by: ['prospect_id', 'inbox_id', 'campaign_id', 'reply_kind'],
    filters,
  }),
  nestedListOperation(
    {
      name: 'threads.messages',
      title: 'List the messages of a thread',
      path: `${base_path}/threads/{id}/messages`,
      scope: 'messages:read',
      summary: 'Lists the messages of a thread, newest first.',
    },
    {
      of: { resource: messages, by: ['direction', 'purpose', 'state', 'reply_kind'], filters },
      parent: ({ tx }, id) => threads.get(tx, id),
      where: (thread_id) => sql`t.thread_id = ${thread_id}`,
    },
  ),
];
