import sql from 'sql-template-tag';
import { z } from 'zod';
import type { Vault } from '../../core/encryption/vault.ts';
import type { RowStream } from '../../core/formats/row_stream.ts';
import { list } from '../../core/resource/list.ts';
import { idParams, type Operation, operation } from '../../core/resource/operation.ts';
import { domain, email, id } from '../../core/values/fields.ts';
import { alreadyExists, Problem } from '../../core/values/problem.ts';
import { actorOf } from '../brands/acting.ts';
import { base_path } from '../events/base_path.ts';
import { lift_reasons } from '../events/fields.ts';
import { registrableDomain } from '../pages/key.ts';
import { prospects } from '../prospects/prospect.ts';
import { lift, liftMark, suppress, type Target } from './mark.ts';
import { isMark, kinds, mark_reasons, openedEntry, reasons, type Suppression, suppressions } from './suppression.ts';

const log = list({
  resource: suppressions,
  by: ['kind', 'reason', 'prospect_id'],
  filters: {
    lifted: {
      schema: z
        .enum(['true', 'false'])
        .optional()
        .describe('Whether entries were lifted. By default, both are listed.'),
      where: (value: string) => (value === 'true' ? sql`t.lifted_at is not null` : sql`t.lifted_at is null`),
    },
  },
});

const Entry = z.strictObject({
  kind: z.enum(kinds).describe('What the entry bars from outreach.'),
  email: email.optional().describe('The address, for the kind `address`.'),
  domain: domain
    .optional()
    .describe(
      'The domain, for the kind `domain`. Its registrable domain is barred, with all subdomains. A free mail domain such as gmail.com bars all addresses there.',
    ),
  prospect_id: id('fdi').optional().describe('The prospect, for the kind `prospect`.'),
  reason: z
    .enum(reasons)
    .default('manual')
    .describe(
      'Why. `unsubscribed` and `hard_bounce` are for addresses. `unsubscribed` and `complaint` cannot be lifted.',
    ),
});
type Entry = z.infer<typeof Entry>;

const lift_reason = z.enum(lift_reasons).default('other').describe('Why.');

export const doNotContactOperations: Operation[] = [
  operation({
    name: 'do_not_contact.list',
    title: 'List do-not-contact entries',
    method: 'GET',
    path: `${base_path}/do_not_contact`,
    scope: 'do_not_contact:read',
    summary:
      'Lists do-not-contact entries: addresses, domains and prospects that are barred from outreach, newest first.',
    query: log.query,
    reply: log.reply,
    async run({ tx, query, caller, counts_to, services: { vault } }) {
      const page = await log.page(tx, query as Record<string, unknown>, caller.scopes, counts_to);
      return { ...page, data: page.data.map((row) => openedEntry(vault, row as unknown as Suppression)) };
    },
    async stream({ tx, query, caller, format, services: { vault } }) {
      const all = await log.stream(tx, query as Record<string, unknown>, caller.scopes, format);
      return { ...all, rows: openedRows(vault, all.rows) };
    },
  }),
  operation({
    name: 'do_not_contact.get',
    title: 'Retrieve a do-not-contact entry',
    method: 'GET',
    path: `${base_path}/do_not_contact/{id}`,
    scope: 'do_not_contact:read',
    summary: 'Retrieves the do-not-contact entry with the given id.',
    params: idParams,
    reply: suppressions.schema,
    run: async ({ tx, params, services: { vault } }) => openedEntry(vault, await suppressions.get(tx, params.id)),
  }),
  operation({
    name: 'do_not_contact.create',
    title: 'Create a do-not-contact entry',
    method: 'POST',
    path: `${base_path}/do_not_contact`,
    scope: 'do_not_contact:write',
    summary: 'Creates a do-not-contact entry, which bars an address, a domain or a prospect from outreach.',
    doc: 'Once the request is answered, no email to them is started. Of a domain that applies to more than some hundred prospects, a worker marks the others. Emits `do_not_contact.added` for each prospect that it applies to and that was not marked Do not contact. An address with the reason `unsubscribed` sets `unsubscribed_at` of all prospects with this address, and emits no event. If an entry exists already, a stronger reason replaces a weaker one, in this order: `complaint`, `unsubscribed`, `legal`, `angry_reply`, `manual`, `hard_bounce`; this emits `do_not_contact.added` too. If nothing changes, the response is 409 with `existing`.',
    body: Entry,
    reply: suppressions.schema,
    status: 201,
    errors: ['resource_not_found', 'resource_already_exists', 'sample_prospect'],
    async run({ tx, body, caller, services: { vault } }) {
      const target = targetOf(body);
      if (target.kind === 'prospect') await prospects.get(tx, target.prospect_id, { param: 'prospect_id' });
      const { entry, changed } = await suppress(tx, vault, target, body.reason, await actorOf(tx, caller));
      const opened = openedEntry(vault, entry);
      if (!changed)
        throw alreadyExists(
          value_fields[body.kind],
          'It is barred already, for this reason or a stronger one.',
          opened,
        );
      return opened;
    },
  }),
  operation({
    name: 'do_not_contact.lift',
    title: 'Lift a do-not-contact entry',
    method: 'POST',
    path: `${base_path}/do_not_contact/{id}/lift`,
    scope: 'do_not_contact:write',
    summary: 'Lifts a do-not-contact entry.',
    doc: 'Emits `do_not_contact.lifted` for each prospect that no other entry bars. Nothing that was stopped is resumed. `unsubscribed` and `complaint` cannot be lifted.',
    params: idParams,
    body: z.strictObject({ reason: lift_reason }).prefault({}),
    reply: suppressions.schema,
    errors: ['cannot_lift'],
    run: async ({ tx, params, body, caller, services: { vault } }) =>
      lift(tx, vault, params.id, body.reason, await actorOf(tx, caller)),
  }),
  operation({
    name: 'prospects.do_not_contact',
    title: 'Mark a prospect Do not contact',
    method: 'POST',
    path: `${base_path}/prospects/{id}/do_not_contact`,
    scope: 'do_not_contact:write',
    summary: 'Marks a prospect Do not contact, which bars them from outreach.',
    doc: 'Emits `do_not_contact.added`, unless the prospect is marked already for this reason or a stronger one.',
    params: idParams,
    body: z
      .strictObject({ reason: z.enum(mark_reasons).default('manual').describe('Why. `complaint` cannot be lifted.') })
      .prefault({}),
    reply: prospects.schema,
    errors: ['sample_prospect'],
    async run({ tx, params, body, caller, services: { vault } }) {
      const { id: prospect_id } = await prospects.get(tx, params.id);
      await suppress(tx, vault, { kind: 'prospect', prospect_id }, body.reason, await actorOf(tx, caller));
      return prospects.get(tx, prospect_id);
    },
  }),
  operation({
    name: 'prospects.lift_do_not_contact',
    title: 'Lift the mark Do not contact',
    method: 'POST',
    path: `${base_path}/prospects/{id}/do_not_contact/lift`,
    scope: 'do_not_contact:write',
    summary: 'Lifts the mark Do not contact of a prospect.',
    doc: 'Emits `do_not_contact.lifted`. A complaint and an unsubscribe cannot be lifted. If an entry on an address or the domain bars the prospect, lift that entry instead.',
    params: idParams,
    body: z.strictObject({ reason: lift_reason }).prefault({}),
    reply: prospects.schema,
    errors: ['sample_prospect', 'cannot_lift'],
    async run({ tx, params, body, caller, services: { vault } }) {
      const prospect = await prospects.get(tx, params.id);
      await liftMark(tx, vault, prospect, body.reason, await actorOf(tx, caller));
      return prospects.get(tx, prospect.id);
    },
  }),
];

const value_fields = { address: 'email', domain: 'domain', prospect: 'prospect_id' } as const;

/** @throws Problem missing_parameter, invalid_parameter */
function targetOf(body: Entry): Target {
  const needed = value_fields[body.kind];
  const other = Object.values(value_fields).find((name) => name !== needed && body[name] !== undefined);
  if (body[needed] === undefined) {
    throw new Problem('missing_parameter', `'${needed}' is required for the kind '${body.kind}'.`, { param: needed });
  }
  if (other) {
    throw new Problem('invalid_parameter', `'${other}' is not allowed with the kind '${body.kind}'.`, {
      param: other,
    });
  }
  if (body.kind !== 'address' && !isMark(body.reason)) {
    throw new Problem(
      'invalid_parameter',
      `The reason '${body.reason}' applies to addresses only. Use another reason.`,
      {
        param: 'reason',
      },
    );
  }
  if (body.kind === 'domain') requireOwned(body.domain as string);
  return { kind: body.kind, email: body.email, domain: body.domain, prospect_id: body.prospect_id } as Target;
}

/**
 * Refuses suffixes under which anybody registers names: an entry for one would bar none of the addresses that it seems to.
 * @throws Problem invalid_parameter
 */
function requireOwned(barred: string): void {
  if (registrableDomain(barred) !== undefined) return;
  throw new Problem(
    'invalid_parameter',
    `'${barred}' is a public suffix, under which anybody can register domains. Bar a domain under it, such as example.${barred}.`,
    { param: 'domain' },
  );
}

async function* openedRows(vault: Vault, batches: RowStream['rows']) {
  for await (const rows of batches) yield rows.map((row) => openedEntry(vault, row as Suppression));
}
