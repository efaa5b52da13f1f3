import t from 'tap';
import { z } from 'zod';
import { catalogue } from '../../src/recruitment/events/catalogue.ts';
import type { Json } from '../harness.ts';

const outreach = 'brand_id, prospect_id, campaign_id, sequence_id, inbox_id, occurred_at';

/** Section 6 of the specification, "Catalogue": every type with all fields of `data`, in its order. */
const specified = `
affiliate.added | prospect_id, channel, source
affiliate.saved | prospect_id, channel, key, list_id
affiliate.hidden | prospect_id, reason
affiliate.stage_changed | prospect_id, from, to, by_user_id, reason
email.revealed | prospect_id, source, verification, addresses
affiliate.unsubscribed | ${outreach}
do_not_contact.added | prospect_id, reason, by_user_id
do_not_contact.lifted | prospect_id, reason, by_user_id
search.completed | search_id, brand_id, search_type, state, found
search.failed | search_id, credit_refunded
scan.completed | scan_id, brand_id, trigger, state, found
scan.failed | scan_id, brand_id, trigger, error, credit_refunded
message.sent | ${outreach}, message_id, step_index
message.bounced | ${outreach}, message_id
message.failed | ${outreach}, step_index, reason
reply.received | ${outreach}, message_id, reply_kind
sequence.completed | ${outreach}, outcome
campaign.launched | brand_id, campaign_id, occurred_at
campaign.paused | brand_id, campaign_id, occurred_at, reason, fix, sent, bounced
campaign.inbox_dropped | brand_id, campaign_id, occurred_at, inbox_id, reason
campaign.resumed | brand_id, campaign_id, occurred_at
campaign.stopped | brand_id, campaign_id, occurred_at
campaign.finished | brand_id, campaign_id, occurred_at
campaign.send_failed | brand_id, campaign_id, occurred_at, prospect_id, sequence_id, reason
deal.agreed | deal_id, prospect_id, version, agreed_by
affiliate.activated | deal_id, prospect_id, program_id, partner_id, rule_id, linked_existing, terms_summary
inbox.connected | inbox_id, occurred_at
inbox.disconnected | inbox_id, reason, paused_sequences, paused_campaigns, occurred_at
affiliate.assigned | prospect_id, brand_id, assignee_member_id, previous_member_id, by_member_id
note.added | prospect_id, brand_id, note_id, author_member_id
affiliate.invited | prospect_id, brand_id, by_member_id
affiliate.signed_up | prospect_id, brand_id, source`
  .trim()
  .split('\n')
  .map((line) => line.split(' | ') as [string, string]);

/** The values that the specification quotes. */
const quoted: Record<string, Record<string, unknown[]>> = {
  'search.completed': { state: ['done', 'stopped_at_ceiling'] },
  'reply.received': { reply_kind: ['positive', 'question', 'not_now', 'negative', 'wrong_person', 'angry'] },
  'campaign.paused': { reason: ['bounce_rate', 'spam_complaint', 'not_entitled', null] },
  'affiliate.signed_up': { source: ['manual', 'rail'] },
};

/** The prefixes of ids that the specification lists, by field. */
const prefixes: Record<string, string> = {
  ...{ prospect_id: 'fdi', campaign_id: 'fca', sequence_id: 'fsq', inbox_id: 'fin', brand_id: 'fbr' },
  ...{ message_id: 'fms', search_id: 'fsc', scan_id: 'fsc', deal_id: 'fdl', note_id: 'fcn' },
  ...{ assignee_member_id: 'tm', previous_member_id: 'tm', by_member_id: 'tm', author_member_id: 'tm' },
  ...{ by_user_id: 'usr', agreed_by: 'usr', program_id: 'prg', partner_id: 'part', rule_id: 'flw', list_id: 'fls' },
};

const entries = Object.entries(catalogue).map(([type, { data, ...rest }]) => ({
  type,
  data: data as z.ZodObject,
  ...rest,
}));
const fieldsOf = ({ data }: { data: z.ZodObject }) => Object.entries(data.shape as Record<string, z.ZodType>);

t.test('has the 32 types of the specification, each with its fields in their order', async (t) => {
  t.same(
    entries.map((each) => [
      each.type,
      fieldsOf(each)
        .map(([name]) => name)
        .join(', '),
    ]),
    specified,
  );
  t.equal(entries.length, 32);
});

t.test('takes the values that the specification quotes', async (t) => {
  for (const [type, fields] of Object.entries(quoted)) {
    const { data } = entries.find((each) => each.type === type) as (typeof entries)[number];
    for (const [name, values] of Object.entries(fields)) {
      for (const value of values)
        t.ok((data.shape[name] as z.ZodType).safeParse(value).success, `${type} ${name} ${value}`);
    }
  }
});

t.test('gives an example of every type, with all of its keys, which its schema takes as it is', async (t) => {
  for (const { type, data, example } of entries) {
    t.same(data.parse(example), example, type);
    t.same(Object.keys(example), Object.keys(data.shape), type);
  }
});

t.test('demands every key of every type, null where there is no value', async (t) => {
  for (const { type, data, example } of entries) {
    for (const name of Object.keys(example)) {
      const { [name]: _, ...without } = example as Json;
      t.notOk(data.safeParse(without).success, `${type} without ${name}`);
    }
    t.notOk(data.safeParse({ ...example, more: 1 }).success, `${type} with a key more`);
  }
});

/** Texts that must never be in an event: addresses, the text of a mail, a typed search text, the terms of a deal. */
const forbidden = [
  ...['ada@example.com', 'Ada Lovelace <ada@example.com>', 'mailto:ada@example.com', 'ada%40example.com@x'],
  ...['Dear Ada, we like your site.\n\nWould you join our program?', 'best espresso grinder under 500'],
  ...[
    '25 % for 12 months',
    '{"rate_type":"percent","rate_value":2500}',
    'Percent commission rule of 25 %, deal version 2',
  ],
  ...['A sentence of nobody.', 'fdi_ ada@example.com', 'tm_ada@example.com'],
];

t.test('has no field that takes an address, the text of a mail, a search text or terms', async (t) => {
  const values = [...forbidden, [forbidden[0]], { text: forbidden[0] }];
  const taken = entries.flatMap((each) =>
    fieldsOf(each).flatMap(([name, schema]) =>
      values
        .filter((value) => schema.safeParse(value).success)
        .map((value) => `${each.type} ${name} takes ${JSON.stringify(value)}`),
    ),
  );
  t.same(taken, []);
});

t.test(
  'has ids, enumerations, integers, booleans and times alone, and a key that is a domain or a handle',
  async (t) => {
    for (const { type, data } of entries) {
      const { properties = {} } = z.toJSONSchema(data) as Json;
      for (const [name, schema] of Object.entries<Json>(properties)) {
        for (const branch of schema.anyOf ?? [schema]) {
          const isClosed =
            ['integer', 'boolean', 'null'].includes(branch.type) ||
            branch.enum !== undefined ||
            branch.format === 'date-time' ||
            (branch.type === 'string' && branch.pattern !== undefined);
          t.ok(isClosed, `${type} ${name}: ${JSON.stringify(branch)}`);
        }
      }
    }
  },
);

t.test('names records by the prefixes of the specification', async (t) => {
  for (const each of entries) {
    for (const [name, schema] of fieldsOf(each)) {
      const prefix = prefixes[name];
      t.equal(prefix !== undefined, /_id$|^agreed_by$/.test(name), `${each.type} ${name}`);
      if (prefix === undefined) continue;
      t.ok(schema.safeParse(`${prefix}_01kap3b6n8f2v9w4x7y0z1a2b3`).success, `${each.type} ${name} takes ${prefix}_`);
      t.notOk(schema.safeParse('xyz_01kap3b6n8f2v9w4x7y0z1a2b3').success, `${each.type} ${name} takes no other`);
    }
  }
});

t.test('says of no example and of no value that a schema lists what may not be said', async (t) => {
  const said = entries.flatMap(({ type, data, example }) =>
    [...Object.values(example), ...JSON.stringify(z.toJSONSchema(data)).matchAll(/"enum":\[(.*?)\]/g)]
      .filter((value) => String(value).includes('@'))
      .map((value) => `${type}: ${value}`),
  );
  t.same(said, []);
});
