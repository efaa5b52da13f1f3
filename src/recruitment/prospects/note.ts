import sql from 'sql-template-tag';
import { z } from 'zod';
import { DeletedMarker } from '../../core/resource/deleted_marker.ts';
import { nestedListOperation } from '../../core/resource/nested_list.ts';
import { idParams, type Operation, operation } from '../../core/resource/operation.ts';
import { resource } from '../../core/resource/resource.ts';
import { id, notBlank, objectName, text, timestamp } from '../../core/values/fields.ts';
import { newId } from '../../core/values/id.ts';
import { actorOf } from '../brands/acting.ts';
import { teamMembers } from '../brands/team_member.ts';
import { base_path } from '../events/base_path.ts';
import { event } from '../events/event.ts';
import { isSample } from '../samples/sample.ts';
import { noteSample } from '../samples/sample_action.ts';
import { recordActivity } from './activity.ts';
import { prospects, requireLiveKey } from './prospect.ts';

export const notes = resource({
  object: 'note',
  plural: 'notes',
  base_path,
  table: 'recruitment.note',
  hard_delete: 'prospect_id',
  doc: 'A note of the team about a prospect.',
  relations: { author_member: teamMembers },
  fields: {
    id: id('fcn'),
    object: objectName('note'),
    prospect_id: id('fdi').describe('The prospect.'),
    author_user_id: id('usr').nullable().describe('Who wrote it. Null: the API.'),
    author_member_id: id('tm').nullable().describe('The team member who wrote it. Null: the API.'),
    text: text.describe('The note.'),
    created_at: timestamp,
    updated_at: timestamp,
  },
});

type Note = z.infer<typeof notes.record>;

const Text = z.strictObject({ text: notBlank(5000).describe('The note.') });

export const noteOperations: Operation[] = [
  nestedListOperation(
    {
      name: 'notes.list',
      title: 'List the notes about a prospect',
      path: `${base_path}/prospects/{id}/notes`,
      scope: 'notes:read',
      summary: 'Lists the notes about a prospect, newest first.',
      errors: ['sample_prospect'],
    },
    {
      of: { resource: notes, by: ['author_member_id'] },
      parent: ({ tx }, id) => prospects.get(tx, id),
      where: (prospect_id) => sql`t.prospect_id = ${prospect_id}`,
      cursor: (prospect_id) => sql`t.prospect_id = ${prospect_id}`,
    },
  ),

  operation({
    name: 'notes.create',
    title: 'Add a note',
    method: 'POST',
    path: `${base_path}/prospects/{id}/notes`,
    scope: 'notes:write',
    summary: 'Adds a note to a prospect.',
    doc: 'Emits `note.added`. A note on a sample prospect emits `note.added`, but is not stored.',
    params: idParams,
    body: Text,
    reply: notes.schema,
    status: 201,
    test_keys: true,
    errors: ['test_key_not_allowed'],
    async run({ tx, params, body, caller }) {
      const by = await actorOf(tx, caller);
      const author = { author_user_id: by.user_id, author_member_id: by.member_id };
      if (isSample(params.id)) {
        const note_id = await noteSample(tx, params.id, by);
        const times = { created_at: tx.now, updated_at: tx.now };
        return { id: note_id, object: 'note' as const, prospect_id: params.id, ...author, ...body, ...times };
      }
      requireLiveKey(caller);
      const { id: prospect_id, brand_id } = await prospects.get(tx, params.id, { lock: 'share' });
      const note = (await notes.insert(tx, { ...body, ...author, id: newId('fcn'), prospect_id })) as Note;
      const { id: note_id, author_member_id } = note;
      tx.emit(event('note.added', tx.organization_id, { prospect_id, brand_id, note_id, author_member_id }));
      recordActivity(tx, 'note_added', by, [{ prospect_id, data: { note_id } }]);
      return note;
    },
  }),
  operation({
    name: 'notes.update',
    method: 'PATCH',
    path: `${base_path}/notes/{id}`,
    scope: 'notes:write',
    summary: 'Changes the text of a note.',
    params: idParams,
    body: Text.partial(),
    reply: notes.schema,
    run: async ({ tx, params, body }) => notes.update(tx, params.id, body),
  }),
  operation({
    name: 'notes.delete',
    method: 'DELETE',
    path: `${base_path}/notes/{id}`,
    scope: 'notes:write',
    summary: 'Deletes a note.',
    params: idParams,
    reply: DeletedMarker,
    async run({ tx, params }) {
      await notes.get(tx, params.id, { lock: true });
      await notes.deleteOutright(tx, params.id);
      return { id: params.id, object: 'note', deleted: true as const };
    },
  }),
];
