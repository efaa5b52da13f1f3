import sql from 'sql-template-tag';
import { nestedListOperation } from '../../core/resource/nested_list.ts';
import { type Operation, readOperations } from '../../core/resource/operation.ts';
import { brands } from '../brands/brand.ts';
import { base_path } from '../events/base_path.ts';
import { messages } from '../sequences/message.ts';
import { threads } from '../sequences/thread.ts';
import { filters } from './filters.ts';

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
