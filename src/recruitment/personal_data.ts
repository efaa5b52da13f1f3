/** Exports and erases the personal data that is stored about a prospect. */
import sql, { type Sql } from 'sql-template-tag';
import { z } from 'zod';
import type { Vault } from '../core/encryption/vault.ts';
import type { Tx } from '../core/postgres/transaction.ts';
import { DeletedMarker } from '../core/resource/deleted_marker.ts';
import { idParams, type Operation, operation } from '../core/resource/operation.ts';
import { type AnyResource, readScope, tenant } from '../core/resource/resource.ts';
import { id, objectName, text, timestamp } from '../core/values/fields.ts';
import { timeOfId } from '../core/values/id.ts';
import { eventsMentioning } from '../webhooks/events/personal_data.ts';
import { actorOf } from './brands/acting.ts';
import { addressesOf, emailAddresses } from './contact/email_address.ts';
import { openedEntry, type Suppression, suppressions } from './contact/suppression.ts';
import { deals } from './deals/deal.ts';
import { dealVersions } from './deals/deal_version.ts';
import { eraseProspects } from './erase.ts';
import { base_path } from './events/base_path.ts';
import { catalogue, prefixes } from './events/catalogue.ts';
import { lists } from './lists/list.ts';
import { activities } from './prospects/activity.ts';
import { lockSuppressions } from './prospects/barred_site.ts';
import { notes } from './prospects/note.ts';
import { type Prospect, prospects } from './prospects/prospect.ts';
import { messages } from './sequences/message.ts';
import { sequences } from './sequences/sequence.ts';
import { threads } from './sequences/thread.ts';

const ProspectExport = z
  .object({
    object: objectName('prospect_export'),
    exported_at: timestamp.describe('When the document was made.'),
    prospect: prospects.record.describe('The prospect.'),
    emails: z.array(emailAddresses.record).describe('The addresses, the best first.'),
    do_not_contact: z
      .array(suppressions.record)
      .describe(
        'The do-not-contact entries that bar the prospect, an address or a domain of it, including lifted ones.',
      ),
    lists: z.array(lists.record).describe('The lists that the prospect is in.'),
    notes: z.array(notes.record).describe('What the team noted.'),
    deals: z.array(deals.record).describe('The deals with the prospect.'),
    deal_versions: z.array(dealVersions.record).describe('The terms of the deals, each version of them.'),
    sequences: z.array(sequences.record).describe('The sequences to the prospect.'),
    threads: z.array(threads.record).describe('The threads with the prospect.'),
    messages: z.array(messages.record).describe('The emails to the prospect, and those that answer them.'),
    activity: z.array(activities.record).describe('What happened.'),
    events: z
      .array(
        z.object({
          id: id('fev'),
          type: text.describe('What happened.'),
          created_at: timestamp,
          data: z.record(z.string(), z.json()).describe("The type's fields."),
        }),
      )
      .describe('The events about the prospect that are still kept.'),
  })
  .meta({ id: 'ProspectExport', description: 'Everything that is stored about a prospect, each list oldest first.' });

export const personalDataOperations: Operation[] = [
  operation({
    name: 'prospects.delete',
    method: 'DELETE',
    path: `${base_path}/prospects/{id}`,
    scope: 'prospects:write',
    summary: 'Erases a prospect, with everything that is stored about the person.',
    doc: 'Addresses, notes, deals, activity and evidence are removed, the texts of emails, and the key from stored events. Sequences, threads and messages stay without the person, so that counts stay true. Beyond that, only hashes are kept: of brand, channel and key, so that no search or scan adds the prospect again, and of the addresses that are barred from outreach, which stay barred if they are added or imported later. Replies stored for an `Idempotency-Key` are kept for up to 24 hours. This cannot be undone.',
    params: idParams,
    reply: DeletedMarker,
    errors: ['sample_prospect'],
    async run({ tx, params, caller, services: { vault } }) {
      await lockSuppressions(tx);
      const prospect = await prospects.get(tx, params.id, { lock: true });
      await eraseProspects(tx, vault, [prospect], 'legal', await actorOf(tx, caller));
      return { id: params.id, object: 'prospect', deleted: true as const };
    },
  }),
  operation({
    name: 'prospects.export',
    method: 'GET',
    path: `${base_path}/prospects/{id}/export`,
    scope: 'prospects:read',
    further_scopes: [notes, lists, suppressions, deals, sequences, messages].map(readScope),
    summary: 'Exports everything that is stored about a prospect.',
    doc: 'One JSON document, to answer a person who asks what you store about them.',
    params: idParams,
    reply: ProspectExport,
    errors: ['sample_prospect'],
    run: async ({ tx, params, services: { vault } }) => exportOf(tx, vault, await prospects.get(tx, params.id)),
  }),
];

type Export = z.infer<typeof ProspectExport>;

async function exportOf(tx: Tx, vault: Vault, prospect: Prospect): Promise<Export> {
  const { id: prospect_id } = prospect;
  const records = <Record_>(resource: AnyResource, where: Sql) =>
    tx.all(sql`
      select ${resource.columns} from ${resource.from} where ${tenant(tx)} and ${where} order by t.id`) as Promise<
      Record_[]
    >;
  const entries = await records<Suppression>(suppressions, bars(prospect_id));
  return {
    object: 'prospect_export',
    exported_at: tx.now,
    prospect,
    emails: await addressesOf(tx, vault, prospect_id),
    do_not_contact: entries.map((entry) => openedEntry(vault, entry)),
    lists: await records(
      lists,
      sql`t.id in (
      select x.list_id from recruitment.list_prospect x
      where x.organization_id = t.organization_id and x.prospect_id = ${prospect_id})`,
    ),
    notes: await records(notes, sql`t.prospect_id = ${prospect_id}`),
    deals: await records(deals, sql`t.prospect_id = ${prospect_id}`),
    deal_versions: await records(
      dealVersions,
      sql`t.deal_id in (
      select x.id from recruitment.deal x
      where x.organization_id = t.organization_id and x.prospect_id = ${prospect_id})`,
    ),
    sequences: await records(sequences, sql`t.prospect_id = ${prospect_id}`),
    threads: await records(threads, sql`t.prospect_id = ${prospect_id}`),
    messages: await records(messages, sql`t.prospect_id = ${prospect_id}`),
    activity: await records(activities, sql`t.prospect_id = ${prospect_id}`),
    events: await eventsOf(tx, prospect_id),
  };
}

const bars = (prospect_id: string): Sql => sql`(
  t.prospect_id = ${prospect_id}
  or t.hmac in (
    select unnest(array[a.address_hmac, a.domain_hmac]) from recruitment.email_address a
    where a.organization_id = t.organization_id and a.prospect_id = ${prospect_id}
  ))`;

/** The types of events that name a prospect. */
const types_about_prospects = Object.entries(catalogue)
  .filter(([, { data }]) => 'prospect_id' in data.shape)
  .map(([type]) => type);

async function eventsOf(tx: Tx, prospect_id: string): Promise<Export['events']> {
  const events = await eventsMentioning(
    tx,
    { catalogue, ...prefixes },
    {
      ...{ subject_id: tx.organization_id, types: types_about_prospects, ids: [prospect_id] },
      since_ms: timeOfId(prospect_id),
    },
  );
  return events.map(({ body }) => {
    const { id: event_id, type, created_at, data } = JSON.parse(body);
    return { id: event_id, type, created_at, data };
  });
}
