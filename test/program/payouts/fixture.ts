import { eventually, type Json, type Rail, sql } from '../../harness.ts';
import type { Shop } from '../../shop.ts';

export const bank = {
  method: 'bank_transfer',
  details: { account_holder: 'Ada Lovelace', iban: 'DE89370400440532013000', bic: 'COBADEFFXXX' },
};

export const bonus = (
  { merchant, program_id }: Shop,
  { id: partner_id }: Json,
  amount_minor: number,
  fields: Json = {},
) => merchant.post('/v1/commissions', { program_id, partner_id, amount_minor, ...fields });

/** A partner who is paid by bank transfer, with bonuses that are due. */
export async function payee(
  shop: Shop,
  amounts: number[],
  { payout_method = bank, ...fields }: Json = {},
): Promise<Json> {
  const partner = await shop.partner(fields);
  if (payout_method) await shop.merchant.request('PUT', `/v1/partners/${partner.id}/payout_method`, payout_method);
  for (const amount_minor of amounts) await bonus(shop, partner, amount_minor);
  return partner;
}

/** A batch, once its payouts are created. */
export async function batchOf({ merchant, program_id }: Shop, fields: Json = {}): Promise<Json> {
  const { id } = await merchant.post('/v1/payout_batches', { program_id, ...fields });
  return generated(merchant, id);
}

export async function generated(merchant: Shop['merchant'], batch_id: string): Promise<Json> {
  let batch: Json = {};
  await eventually(async () => {
    batch = await merchant.get(`/v1/payout_batches/${batch_id}`);
    return batch.progress.state === 'done';
  }, 'the batch to be created');
  return batch;
}

let versions = 0;

/** Credentials of a provider's rail, as they are kept once they were tried. */
export async function setRail(
  rail: Pick<Rail, 'services' | 'query'>,
  { merchant: { organization_id }, program_id }: Pick<Shop, 'merchant' | 'program_id'>,
  name: string,
  credentials: object,
  mode = 'live',
): Promise<void> {
  const id = `rail_x${++versions}`;
  const encrypted = rail.services.vault.encrypt(JSON.stringify(credentials), id);
  await rail.query(sql`
    insert into program.rail (organization_id, program_id, id, rail, version, mode, credentials, created_at, updated_at)
    values (${organization_id}, ${program_id}, ${id}, ${name}, ${versions}, ${mode}, ${encrypted}, now(), now())`);
}

/** A payout once its status is one of these. */
export async function payoutAfter({ merchant }: Shop, { id }: Json, ...statuses: string[]): Promise<Json> {
  let payout: Json = {};
  await eventually(
    async () => {
      payout = await merchant.get(`/v1/payouts/${id}`);
      return statuses.includes(payout.status);
    },
    `the payout to be ${statuses.join(' or ')}`,
  );
  return payout;
}
