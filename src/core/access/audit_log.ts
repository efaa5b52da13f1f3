/** The audit log: who changed what through the API or the command line, and when. */
import sql, { type Sql } from 'sql-template-tag';
import { z } from 'zod';
import type { Tx } from '../postgres/transaction.ts';
import { type Caller, type Operation, readOperations } from '../resource/operation.ts';
import { resource } from '../resource/resource.ts';
import { id, objectName, text, timestamp } from '../values/fields.ts';
import { newId } from '../values/id.ts';

export const auditEntries = resource({
  object: 'audit_entry',
  plural: 'audit_log',
  listed_as: 'audit entries',
  table: 'core.audit_entry',
  doc: 'A change that somebody made: through the API with a key, or on the command line.',
  fields: {
    id: id('aud'),
    object: objectName('audit_entry'),
    api_key_id: id('key')
      .nullable()
      .describe('The key of the request. Null: it was changed in the dashboard or the portal, or on the command line.'),
    user_id: id('usr')
      .nullable()
      .describe(
        'The user who changed it in the dashboard, or whose key it was. Null: nobody’s key, a partner, or the command line.',
      ),
    partner_id: id('part').nullable().describe('The partner who changed it in the portal.'),
    operation: text.meta({
      description: 'The operation, by its `operationId` in the description of the API.',
      examples: ['partners.update'],
    }),
    object_id: text.nullable().describe('The object that was changed, or created. Null: several, or none.'),
    fields: z
      .array(text)
      .describe(
        'The fields of the body, by name and without their values; with a new object, those that it took by default too.',
      ),
    request_id: text
      .nullable()
      .describe(
        'The request (`req_…`, or a uuid where it was made on a page), as events and logs name it. Null: the command line.',
      ),
    created_at: timestamp,
  },
});

/** @param streams the operations of which no entry is made */
export const auditLogOperations = (streams: string[]): Operation[] =>
  readOperations({
    resource: auditEntries,
    by: ['api_key_id', 'user_id', 'partner_id', 'operation', 'object_id'],
    list_doc: `Every request that changed something has an entry, written in its transaction, so that none is missing; so has every change to keys, users and plans on the command line. Requests that were refused, replays of an \`Idempotency-Key\` and previews have none, and neither have the records that your systems send all day: ${streams.map((name) => `\`${name}\``).join(', ')}. What jobs and schedules change by themselves is told by events. An entry holds no values, and no personal data. Entries are kept for \`AUDIT_LOG_RETENTION_DAYS\` (400 if the operator sets nothing else), and nobody can change them over the API.`,
  });

/** Returns the object that the path of a request names, else the one that it created. */
const objectOf = (params: object, reply: unknown): string | null => {
  const [named] = Object.values(params);
  const made = (reply as { id?: unknown } | null)?.id;
  if (typeof named === 'string') return named;
  return typeof made === 'string' ? made : null;
};

const fieldsOf = (body: unknown): string[] =>
  typeof body === 'object' && body !== null && !Array.isArray(body) ? Object.keys(body) : [];

interface Answered {
  caller: Caller;
  params: object;
  body: unknown;
  reply: unknown;
}

/** Has an entry be written with the commit, in the round trip of that. The command line has no key: its id is empty. */
export function logChange(tx: Tx, operation: string, { caller, params, body, reply }: Answered): void {
  const { user_id, partner_id } = caller;
  const has_key = caller.api_key_id !== '' && user_id === undefined && partner_id === undefined;
  const key_id = has_key ? caller.api_key_id : null;
  tx.atCommit(sql`
    insert into core.audit_entry (organization_id, id, api_key_id, user_id, partner_id, operation, object_id, fields, request_id, created_at)
    values (
      ${tx.organization_id}, ${newId('aud')}, ${key_id},
      coalesce(
        ${user_id ?? null},
        (select k.user_id from core.api_key k where k.organization_id = ${tx.organization_id} and k.id = ${key_id})
      ),
      ${partner_id ?? null}, ${operation}, ${objectOf(params, reply)}, ${fieldsOf(body)}::text[], ${tx.request_id}, ${tx.now}::timestamptz
    )`);
}

/** The same for a command that calls no operation. */
export function logCommand(tx: Tx, operation: string, object_id: string | null, fields: string[] = []): void {
  tx.atCommit(sql`
    insert into core.audit_entry (organization_id, id, operation, object_id, fields, created_at)
    values (${tx.organization_id}, ${newId('aud')}, ${operation}, ${object_id}, ${fields}::text[], ${tx.now}::timestamptz)`);
}

/**
 * A part of a statement that writes the entry of a change on the command line.
 * @param changed the name of a part that returns `organization_id` and `id` of what was changed
 */
export const commandLogged = (operation: string, changed: Sql, fields: string[] = []): Sql => sql`
  logged as (
    insert into core.audit_entry (organization_id, id, operation, object_id, fields)
    select c.organization_id, core.new_id('aud'), ${operation}, c.id, ${fields}::text[] from ${changed} c
  )`;
