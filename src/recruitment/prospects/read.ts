import { z } from 'zod';
import { formatFields } from '../../core/formats/format.ts';
import { rowStream } from '../../core/formats/row_stream.ts';
import { enrich } from '../../core/resource/enrich.ts';
import { list } from '../../core/resource/list.ts';
import type { ListOptions } from '../../core/resource/list_query.ts';
import { idParams, type Operation, operation, readOperations } from '../../core/resource/operation.ts';
import { country, language, metadata, notBlank, text, url } from '../../core/values/fields.ts';
import { Problem } from '../../core/values/problem.ts';
import { timeZone } from '../../core/values/time_zone.ts';
import { brands } from '../brands/brand.ts';
import { totals } from '../brands/tally.ts';
import { base_path } from '../events/base_path.ts';
import { contradicts } from '../pages/key.ts';
import { isSample } from '../samples/sample.ts';
import { readSample, readSamples } from '../samples/sample_prospect.ts';
import { type Prospect, prospects, requireLiveKey } from './prospect.ts';
import { filters, finder } from './search.ts';

/** The fields of a prospect that a person or the API describes. */
export const described = {
  name: notBlank(200).nullable(),
  url: url.nullable(),
  description: text.max(2000).nullable(),
  country_code: country.nullable(),
  language_code: language.nullable(),
  timezone: timeZone.nullable(),
  followers: z.int().min(0).nullable(),
  custom: metadata
    .unwrap()
    .describe('Your own key-value data: at most 50 keys, and 16 KiB as JSON. Replaces what is stored.'),
};

const listed: ListOptions = {
  resource: prospects,
  within: brands,
  by: ['stage', 'channel', 'source'],
  filters,
  totals,
  finder,
  list_doc: 'The samples are in none of these lists: see `GET /recruitment/v1/sample_prospects`.',
};
const [listProspects] = readOperations(listed);
/** The prospects of a brand, for commands. */
export const prospectList = list(listed);

export const readProspectOperations: Operation[] = [
  listProspects as Operation,
  operation({
    name: 'prospects.get',
    method: 'GET',
    path: `${base_path}/prospects/{id}`,
    scope: 'prospects:read',
    summary: 'Retrieves the prospect with the given id, or a sample.',
    params: idParams,
    query: z.strictObject(prospects.expansion),
    reply: prospects.schema,
    test_keys: true,
    errors: ['test_key_not_allowed'],
    async run({ tx, params, query, caller }) {
      if (isSample(params.id)) return enrichedSample(await readSample(tx, params.id), query);
      requireLiveKey(caller);
      const prospect = await prospects.get(tx, params.id);
      await enrich(tx, prospects, [prospect], query, caller.scopes);
      return prospect;
    },
  }),
  operation({
    name: 'sample_prospects.list',
    method: 'GET',
    path: `${base_path}/sample_prospects`,
    scope: 'prospects:read',
    summary: 'Lists the 12 sample prospects.',
    doc: 'Every organization has them, and they never count: they are in no list of prospects, in no statistics and in no export. Live and test keys can retrieve, save, hide, move and add notes to them; each change sends a real event with `livemode` false to test endpoints only. A save or hide of a sample cannot be undone, and a repetition sends no event. Move a sample, or use another one, to send more events.',
    query: z.strictObject({ ...formatFields }),
    reply: z.object({
      data: z.array(prospects.schema).describe('The samples, in the order of their ids.'),
      has_more: z.literal(false).describe('There are no other pages.'),
      total_count: z.int().describe('How many there are.'),
    }),
    test_keys: true,
    async run({ tx }) {
      const data = await readSamples(tx);
      return { data, has_more: false as const, total_count: data.length };
    },
    stream: async ({ tx }) => rowStream('sample_prospects', Object.keys(prospects.fields), await readSamples(tx)),
  }),
  operation({
    name: 'prospects.update',
    method: 'PATCH',
    path: `${base_path}/prospects/{id}`,
    scope: 'prospects:write',
    summary: 'Updates what is known of a prospect.',
    doc: 'The channel and the key stay as they are: a `url` of another prospect is refused.',
    params: idParams,
    body: z.strictObject(described).partial(),
    reply: prospects.schema,
    errors: ['sample_prospect'],
    async run({ tx, params, body }) {
      const { channel, key } = await prospects.get(tx, params.id, { lock: true });
      if (body.url) requireSameProspect(channel, key, body.url);
      return prospects.update(tx, params.id, body);
    },
  }),
];

/** @throws Problem invalid_parameter where the URL is of another prospect than the key */
export function requireSameProspect(channel: Prospect['channel'], key: string, given_url: string): void {
  if (!contradicts(channel, key, given_url)) return;
  throw new Problem(
    'invalid_parameter',
    `'url' names another prospect in the channel '${channel}' than the key '${key}'. Send a URL of this prospect.`,
    { param: 'url' },
  );
}

/** A sample has no brand and no assignee, and no mail is ever sent to it. */
const enrichedSample = (sample: object, { expand, include }: { expand: string[]; include: string[] }): Prospect =>
  ({
    ...sample,
    ...Object.fromEntries(expand.map((name) => [name, null])),
    ...(include.includes('stats') ? { stats: { sent: 0, replies: 0, last_sent_at: null } } : {}),
  }) as Prospect;
