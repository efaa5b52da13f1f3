import { z } from 'zod';
import { type Operation, operation } from '../core/resource/operation.ts';
import { email, text, url } from '../core/values/fields.ts';
import { alreadyExists, Problem } from '../core/values/problem.ts';
import { actorOf } from './brands/acting.ts';
import { brands } from './brands/brand.ts';
import { addManually } from './contact/add_address.ts';
import { base_path } from './events/base_path.ts';
import { brand_id, channel } from './events/fields.ts';
import { canonicalKey, profileUrl } from './pages/key.ts';
import { account_platforms } from './pages/platforms/platforms.ts';
import { createProspects } from './prospects/create.ts';
import { type Prospect, prospects } from './prospects/prospect.ts';
import { described, requireSameProspect } from './prospects/read.ts';

const Body = z.strictObject({
  brand_id,
  channel,
  key: text
    .min(1)
    .max(2048)
    .optional()
    .describe(
      'The domain, or the channel id or the handle in the channels `youtube`, `instagram`, `tiktok` and `x`. It is stored in canonical form: the registrable domain of a website, a handle without `@`. If `url` is sent too, `key` identifies the prospect. Required unless `url` is sent.',
    ),
  ...z.strictObject(described).partial().shape,
  url: url.optional().describe('The URL of the site or the profile. Required unless `key` is sent.'),
  email: email.optional().describe('An email address of the prospect.'),
});
type Body = z.infer<typeof Body>;

export const addProspectOperations: Operation[] = [
  operation({
    name: 'prospects.create',
    method: 'POST',
    path: `${base_path}/prospects`,
    scope: 'prospects:write',
    summary: 'Adds a prospect to a brand.',
    doc: 'Emits `affiliate.added` with the source `manual`, or `api` for a key that belongs to nobody in the team, and `email.revealed` if `email` is sent. A prospect exists once in each channel of a brand: a second one is refused with 409 and `existing`.',
    body: Body,
    reply: prospects.schema,
    status: 201,
    errors: ['resource_already_exists'],
    async run({ tx, body, caller, services: { vault } }) {
      await brands.get(tx, body.brand_id, { param: 'brand_id', lock: 'share' });
      const { email: address, ...known } = body;
      const by = await actorOf(tx, caller);
      const row = { ...known, ...keyAndUrl(body) };
      const [created] = await createProspects(tx, vault, [row], {
        source: by.member_id === null ? 'api' : 'manual',
        by,
      });
      const { id, is_new } = created as NonNullable<typeof created>;
      if (!is_new) throw keyTaken(row.key, await prospects.get(tx, id));
      if (address !== undefined) await addManually(tx, vault, { id, key: row.key }, address, by);
      return prospects.get(tx, id);
    },
  }),
];

/** The key and the URL of what either of them names. @throws Problem missing_parameter, invalid_parameter */
function keyAndUrl({ channel: in_channel, key, url: given_url }: Body): { key: string; url: string } {
  const given = key ?? given_url;
  if (given === undefined) {
    throw new Problem('missing_parameter', "'url' or 'key' is required: it identifies the prospect.", { param: 'url' });
  }
  const canonical = canonicalKey(in_channel, given);
  if (canonical === undefined) {
    const param = key === undefined ? 'url' : 'key';
    throw new Problem(
      'invalid_parameter',
      `'${param}' does not identify a prospect in the channel '${in_channel}'. Send ${acceptedIn(in_channel)}. An email address is not allowed.`,
      { param },
    );
  }
  if (given_url !== undefined) requireSameProspect(in_channel, canonical, given_url);
  return { key: canonical, url: given_url ?? profileUrl(in_channel, canonical) };
}

/** Returns the forms in which a prospect of a channel can be named, for an error. */
function acceptedIn(in_channel: Body['channel']): string {
  if (in_channel === 'youtube') return 'a handle, a channel id, or the URL of the channel';
  if (in_channel in account_platforms) return 'a handle, or the URL of the profile';
  return 'a domain, or the URL of a site or of an account: a handle alone does not say where the account is';
}

const keyTaken = (key: string, existing: Prospect): Problem =>
  alreadyExists('key', `A prospect with the key '${key}' already exists in this channel of the brand.`, existing);
