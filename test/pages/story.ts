/** A program as a merchant sees it after some weeks: partners, links, sales over thirty days, applications that wait, and a batch of payouts. */
import { type Caller, eventually, type Json, type Rail } from '../harness.ts';
import { openShop, type Shop } from '../shop.ts';

export interface Story {
  shop: Shop;
  partners: Json[];
  batch: Json;
}

const names = [
  ['Ada', 'Lovelace', 'Analytical Engines'],
  ['Grace', 'Hopper', 'Compiler Weekly'],
  ['Alan', 'Turing', 'Enigma Review'],
  ['Katherine', 'Johnson', 'Orbit Notes'],
  ['Linus', 'Pauling', 'Bond Journal'],
] as const;

const day_ms = 86_400_000;

/** @param settings of the program */
export async function tellStory(rail: Rail, settings: Json = {}, by?: Caller): Promise<Story> {
  const shop = await openShop(
    rail,
    { name: 'Acme Coffee', holding_period_days: 0, min_payout_minor: 0, ...settings },
    by,
  );
  const { merchant, program_id } = shop;
  await shop.rule({ name: 'Standard', rate_type: 'percent', rate_value: 2000 });
  const partners: Json[] = [];
  for (const [first_name, last_name, company_name] of names) {
    const email = `${first_name.toLowerCase()}@partner.example.com`;
    partners.push(await shop.partner({ email, first_name, last_name, company_name, handle: first_name.toLowerCase() }));
  }
  for (const [nth, partner] of partners.entries()) {
    await shop.link(partner, {
      value: `${partner.handle}-spring`,
      destination_url: 'https://acme.example.com/pricing',
    });
    const customer = await shop.referred(partner, { email: `customer-${nth}@example.com` });
    const sales = Array.from({ length: 8 - nth }, (_, back) => ({
      program_id,
      customer_id: customer.id,
      amount_minor: 4_900 + 1_700 * ((nth + back * 3) % 5),
      currency: 'USD',
      external_charge_id: `ch_story_${nth}_${back}`,
      occurred_at: new Date(Date.now() - (back * 3 + nth) * day_ms - 3_600_000).toISOString(),
    }));
    await merchant.post('/v1/sales/bulk', sales);
    await merchant.request('PUT', `/v1/partners/${partner.id}/payout_method`, {
      method: 'bank_transfer',
      details: {
        account_holder: `${partner.first_name} ${partner.last_name}`,
        iban: 'DE89370400440532013000',
        bic: 'COBADEFFXXX',
      },
    });
  }
  for (const [email, site] of [
    ['marie@applicant.example.com', 'radium.example.com'],
    ['rosalind@applicant.example.com', 'helix.example.com'],
  ])
    await merchant.post('/v1/applications', {
      program_id,
      email,
      answers: { website: site, audience: 'Readers who brew at home, about 12,000 a month.' },
    });
  const batch = await merchant.post('/v1/payout_batches', { program_id, cutoff: new Date().toISOString() });
  await eventually(
    async () => (await merchant.get(`/v1/payout_batches/${batch.id}`)).status !== 'generating',
    'the batch',
  );
  return { shop, partners, batch };
}
