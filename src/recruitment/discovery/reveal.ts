import sql from 'sql-template-tag';
import { z } from 'zod';
import type { Vault } from '../../core/encryption/vault.ts';
import type { Tx } from '../../core/postgres/transaction.ts';
import { idParams, type Operation, operation } from '../../core/resource/operation.ts';
import { tenant } from '../../core/resource/resource.ts';
import { documentedEnum, id, objectName, text, timestamp } from '../../core/values/fields.ts';
import { Problem } from '../../core/values/problem.ts';
import { addAddresses } from '../contact/add_address.ts';
import { addressesOf } from '../contact/email_address.ts';
import { usableAddresses } from '../contact/email_status.ts';
import { base_path } from '../events/base_path.ts';
import { spendCredit } from '../plan/credit.ts';
import { type Prospect, prospects } from '../prospects/prospect.ts';
import { requireMonthly } from '../runs/monthly_limit.ts';

const states = {
  queued: 'it waits for a worker',
  running: "the prospect's pages are being visited",
  found: 'an address is known: read it with `GET /recruitment/v1/prospects/{id}/emails`',
  not_found: 'no usable address was found, and the credit was refunded',
  failed: 'the pages could not be visited, and the credit was refunded',
} as const;

const Reveal = z
  .object({
    object: objectName('reveal'),
    prospect_id: id('fdi').describe('The prospect.'),
    state: documentedEnum(states),
    addresses: z.int().describe('How many usable addresses it found, or that were stored.'),
    pages: z.int().describe('How many pages were visited.'),
    reason: text
      .nullable()
      .describe('Why nothing was found, as a sentence. Null if an address was found, or the reveal has not ended.'),
    credit_taken: z
      .boolean()
      .describe('Whether it costs a credit. No credit is charged if an address is already stored.'),
    credit_refunded: z.boolean().describe('Whether its credit was refunded.'),
    created_at: timestamp,
    finished_at: timestamp.nullable().describe('When it ended. Null if it has not ended.'),
  })
  .meta({ id: 'Reveal', description: 'The last reveal: a job that looks for the email addresses of a prospect.' });
type Reveal = z.infer<typeof Reveal>;

const find = (tx: Tx, prospect_id: string): Promise<Reveal | undefined> =>
  tx.maybe<Reveal>(sql`
    select 'reveal' as object, t.prospect_id, t.state, t.addresses, t.pages, t.reason, t.credit <> 'none' as credit_taken,
      t.credit = 'refunded' as credit_refunded, t.created_at, t.finished_at
    from recruitment.reveal t
    where ${tenant(tx)} and t.prospect_id = ${prospect_id}`);

export const revealOperations: Operation[] = [
  operation({
    name: 'prospects.reveal',
    title: 'Reveal the email addresses of a prospect',
    method: 'POST',
    path: `${base_path}/prospects/{id}/reveal`,
    scope: 'prospects:write',
    summary: 'Looks for the email addresses of a prospect. It runs as a job.',
    doc: 'Up to six pages of the prospect are visited: home, contact, about, advertising, media kit, imprint. It costs a credit, which is refunded if no usable address is found; no credit is charged if an address is already stored. It emits `email.revealed` if it finds a new address. While a reveal is running, another request returns the running reveal.',
    params: idParams,
    reply: Reveal,
    status: 202,
    errors: ['sample_prospect', 'plan_limit_reached', 'no_credits'],
    run: ({ tx, params, services }) => reveal(tx, services.vault, params.id),
  }),
  operation({
    name: 'prospects.get_reveal',
    title: 'Retrieve the last reveal of a prospect',
    method: 'GET',
    path: `${base_path}/prospects/{id}/reveal`,
    scope: 'prospects:read',
    summary: 'Retrieves the last reveal: a job that looks for the email addresses of a prospect.',
    params: idParams,
    reply: Reveal,
    errors: ['sample_prospect'],
    async run({ tx, params }) {
      await prospects.get(tx, params.id);
      const last = await find(tx, params.id);
      if (last) return last;
      throw new Problem(
        'resource_not_found',
        'The prospect has no reveal yet. Start one with POST /recruitment/v1/prospects/{id}/reveal.',
        { param: 'id' },
      );
    },
  }),
];

async function reveal(tx: Tx, vault: Vault, prospect_id: string): Promise<Reveal> {
  const prospect = await prospects.get(tx, prospect_id);
  const stored = await countStored(tx, vault, prospect);
  await prospects.get(tx, prospect_id, { lock: true });
  const last = await find(tx, prospect_id);
  if (last && (last.state === 'queued' || last.state === 'running')) return last;
  if (stored > 0) await begin(tx, prospect_id, { state: 'found', credit: 'none', addresses: stored });
  else await queue(tx, prospect_id);
  return (await find(tx, prospect_id)) as Reveal;
}

async function queue(tx: Tx, prospect_id: string): Promise<void> {
  await requireMonthly(tx, 'reveals_monthly');
  await spendCredit(tx, 'reveal', { prospect_id });
  await begin(tx, prospect_id, { state: 'queued', credit: 'taken', addresses: 0 });
  tx.enqueue('recruitment/reveal_addresses', { organization_id: tx.organization_id, prospect_id });
}

/** Its own addresses, else those of the same prospect of another brand, which become its own. */
async function countStored(tx: Tx, vault: Vault, { id: prospect_id, channel, key }: Prospect): Promise<number> {
  const own = await usableAddresses(tx, prospect_id);
  if (own.size > 0) return own.size;
  const others = await tx.all<{ id: string }>(sql`
    select p.id
    from recruitment.brand b
    join recruitment.prospect p on p.organization_id = b.organization_id and p.brand_id = b.id and p.channel = ${channel} and p.key = ${key}
    where b.organization_id = ${tx.organization_id} and p.id <> ${prospect_id}
    order by p.id`);
  for (const other of others) {
    const usable = await usableAddresses(tx, other.id);
    if (usable.size === 0) continue;
    const known = (await addressesOf(tx, vault, other.id)).filter(({ id }) => usable.has(id));
    const found = known.map(({ email, verification, source_url }) => ({
      email,
      verification,
      source_url,
      source: 'stored' as const,
    }));
    await addAddresses(tx, vault, prospect_id, found);
    return known.length;
  }
  return 0;
}

interface Begun {
  state: 'queued' | 'found';
  credit: 'none' | 'taken';
  addresses: number;
}

const begin = (tx: Tx, prospect_id: string, { state, credit, addresses }: Begun): Promise<object[]> =>
  tx.all(sql`
    insert into recruitment.reveal as t (organization_id, prospect_id, state, credit, addresses, created_at, finished_at, updated_at)
    values (
      ${tx.organization_id}, ${prospect_id}, ${state}, ${credit}, ${addresses}, ${tx.now}::timestamptz,
      case when ${state} = 'found' then ${tx.now}::timestamptz end, ${tx.now}::timestamptz
    )
    on conflict (organization_id, prospect_id) do update
    set
      state = excluded.state, credit = excluded.credit, addresses = excluded.addresses, pages = 0, attempts = 0, reason = null,
      created_at = excluded.created_at, finished_at = excluded.finished_at, updated_at = excluded.updated_at`);
