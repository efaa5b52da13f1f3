import { eventually, type Json, type Rail } from '../../harness.ts';
import { openShop, type Shop } from '../../shop.ts';
import { deliver } from '../payouts/rails/provider_server.ts';
import type { StripeAccount } from './stripe_account.ts';

/** A program that is connected to Stripe, with a rule of 20 % and a partner. */
export interface StripeShop extends Shop {
  partner_of: Json;
  /** Sends events to the service, as Stripe does. */
  send(...events: Json[]): Promise<void>;
  /** The same, and waits until nothing is pending. */
  tell(...events: Json[]): Promise<void>;
  settled(): Promise<void>;
  inbox(query?: string): Promise<Json[]>;
  /** The outcome of an event. */
  outcomeOf(event: Json): Promise<Json>;
}

export async function openStripeShop(rail: Rail, stripe: StripeAccount, settings: Json = {}): Promise<StripeShop> {
  const shop = await openShop(rail, settings);
  await shop.rule();
  const partner_of = await shop.partner();
  const body = { mode: 'test', credentials: stripe.credentials };
  const connected = await shop.merchant.request('PUT', `/v1/programs/${shop.program_id}/processors/stripe`, body);
  if (connected.status !== 200) throw new Error(connected.text);
  const { secret } = stripe.endpoints.find(({ url }) => url.endsWith(shop.program_id)) as Json;
  const inbox = (query = '') => shop.list('processor_events', query);
  const settled = () =>
    eventually(async () => (await inbox('status=pending')).length === 0, 'all events to be worked on');
  const send = async (...events: Json[]) => {
    for (const event of events) {
      const url = `${rail.address}/processors/stripe/${shop.program_id}`;
      const answer = await deliver(url, stripe.webhook(event, { secret }));
      if (answer.status !== 200) throw new Error(`${answer.status} ${await answer.text()}`);
    }
  };
  return {
    ...shop,
    ...{ partner_of, send, settled, inbox },
    async tell(...events) {
      await send(...events);
      await settled();
    },
    outcomeOf: async ({ id }) => (await inbox(`external_event_id=${id}`))[0] as Json,
  };
}
