import { eventually, type Json } from '../../harness.ts';
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
