import { type Answer, type Caller, eventually, type Json, type Rail } from '../harness.ts';

export interface Shop {
  merchant: Caller;
  program_id: string;
  endpoint: Json;
  /** Makes one event, `affiliate.created`. */
  happen(): Promise<Answer>;
  /** So many deliveries, each attempted at least once, in their order. */
  attempted(count: number): Promise<Json[]>;
}

/** A merchant with an endpoint at a receiver. */
export async function openShop(rail: Rail, url: string): Promise<Shop> {
  const merchant = await rail.organization();
  const program = { name: 'Acme', website_url: 'https://acme.example.com', currency: 'USD' };
  const { id: program_id } = await merchant.post('/v1/programs', program);
  const event_types = ['affiliate.created'];
  const endpoint = await merchant.post('/v1/webhook_endpoints', { program_id, url, event_types });
  let partners = 0;
  return {
    merchant,
    program_id,
    endpoint,
    happen: () =>
      merchant.request('POST', '/v1/partners', {
        program_id,
        email: `partner${++partners}@example.com`,
        first_name: 'Zoë',
      }),
    async attempted(count) {
      let log: Json[] = [];
      const read = async () => {
        log = (await merchant.get(`/v1/webhook_endpoints/${endpoint.id}/deliveries?limit=100`)).data.reverse();
        return log.length >= count && log.every(({ attempt }) => attempt > 0);
      };
      await eventually(read, `${count} attempts`, 60_000);
      return log;
    },
  };
}

/** What comes of the first attempt at one event. */
export async function deliverTo(rail: Rail, url: string): Promise<Json> {
  const shop = await openShop(rail, url);
  await shop.happen();
  const [delivery] = (await shop.attempted(1)) as [Json];
  return { status: delivery.status, ...delivery.attempts[0] };
}
