import fc from 'fast-check';
import type { Json } from '../../harness.ts';
import type { Wanted } from './delivery_laws.ts';
import type { Manner } from './scripted_receiver.ts';
import { type Told, type WatchedEndpoint, type WatchedShop, wants } from './watched_endpoints.ts';

const day_ms = 86_400_000;
const types = ['sale.created', 'commission.created', 'affiliate.updated', 'referral.lead', 'payout.paid'];
let ticks = 0;

/** The expected results of the commands so far. */
export interface Model {
  told: Told[];
  /** By endpoint. */
  isEnabled: boolean[];
  wanted: Wanted[];
}

type Command = fc.AsyncCommand<Model, WatchedShop>;

export const command = (
  name: string,
  run: (model: Model, shop: WatchedShop) => Promise<unknown>,
  check: (model: Readonly<Model>) => boolean = () => true,
): Command => ({
  check,
  run: async (model, shop) => void (await run(model, shop)),
  toString: () => name,
});

const tell = (events: { type: string; partner: 0 | 1 }[]): Command =>
  command(`tell(${events.map(({ type, partner }) => `${type} of ${partner}`)})`, async (model, shop) => {
    const first = model.told.length;
    model.told.push(...(await shop.tell(events)));
    for (const [nth, endpoint] of shop.endpoints.entries()) {
      for (const [index, told] of model.told.entries()) {
        if (index >= first && model.isEnabled[nth] && wants(endpoint, told)) model.wanted[nth]?.set(index, 'must');
      }
    }
  });

const answer = (nth: number, manner: Manner, times?: number): Command =>
  command(`answer(${nth}, ${manner}, ${times ?? 'always'})`, async (_, shop) =>
    at(shop, nth).receiver.answer(manner, times),
  );

const rest = (): Command => command('rest()', (_, shop) => shop.quiet());

const rotate = (nth: number): Command =>
  command(`rotate(${nth})`, async (_, shop) => {
    const { id, secrets, history } = at(shop, nth);
    const to = secrets.length;
    history.push({ what: 'rotating', to });
    secrets.push((await shop.merchant.post(`/v1/webhook_endpoints/${id}/rotate_secret`)).secret);
    history.push({ what: 'rotated', to });
  });

/** Deliveries that have not arrived by then may be cancelled. */
const disable = (nth: number): Command =>
  command(
    `disable(${nth})`,
    async (model, shop) => {
      const { id, history } = at(shop, nth);
      await shop.merchant.post(`/v1/webhook_endpoints/${id}/disable`);
      history.push({ what: 'disabled' });
      model.isEnabled[nth] = false;
      for (const index of model.wanted[nth]?.keys() ?? []) model.wanted[nth]?.set(index, 'may');
    },
    ({ isEnabled }) => isEnabled[nth] === true,
  );

/** "It receives what happens from now on": an event has happened once it has been fanned out. */
const enable = (nth: number): Command =>
  command(
    `enable(${nth})`,
    async (model, shop) => {
      const { id, history } = at(shop, nth);
      await shop.fannedOut();
      history.push({ what: 'enabling' });
      await shop.merchant.post(`/v1/webhook_endpoints/${id}/enable`);
      model.isEnabled[nth] = true;
    },
    ({ isEnabled }) => isEnabled[nth] === false,
  );

const replayOne = (nth: number, which: number): Command =>
  command(`replayOne(${nth}, ${which})`, async (model, shop) => {
    const deliveries = await shop.deliveries(at(shop, nth));
    if (deliveries.length === 0) return;
    const { id, event_id } = deliveries[which % deliveries.length] as Json;
    const { status, body } = await shop.merchant.request('POST', `/v1/webhook_deliveries/${id}/replay`);
    const isRight = model.isEnabled[nth]
      ? status === 202 && body.replay_of === id && body.event_id === event_id && body.id !== id
      : status === 409;
    if (!isRight) throw new Error(`A replay answered ${status}: ${JSON.stringify(body)}`);
  });

const replayFailed = (nth: number): Command =>
  command(
    `replayFailed(${nth})`,
    async (_, shop) => {
      const endpoint = at(shop, nth);
      await shop.quiet();
      const before = await shop.deliveries(endpoint);
      const known = new Set(before.map(({ id }) => id));
      const failed = new Set(before.filter(({ status }) => status === 'failed').map(({ event_id }) => event_id));
      const failed_since = new Date(Date.now() - day_ms).toISOString();
      await shop.merchant.post(`/v1/webhook_endpoints/${endpoint.id}/replay`, { failed_since });
      await shop.ended('webhooks/replay_many');
      const replays = (await shop.deliveries(endpoint)).filter(({ id }) => !known.has(id));
      const replayed = replays.toSorted((a, b) => a.queue_position - b.queue_position).map(({ event_id }) => event_id);
      const in_order = (await shop.events()).map(({ id }) => id).filter((id) => failed.has(id));
      if (replayed.join() !== in_order.join()) throw new Error(`Replayed ${replayed} of what failed: ${in_order}`);
    },
    ({ isEnabled }) => isEnabled[nth] === true,
  );

/** The delivery sweep, when all retries are due or none is. */
const retry = (isDue: boolean): Command =>
  command(`retry(${isDue ? 'due' : 'too early'})`, (_, shop) => placeRetries(shop, isDue));

/** An outage that lasts until everything was given up that waits for an endpoint. */
const giveUp = (nth: number, events: Told['type'][]): Command =>
  command(`giveUp(${nth}, ${events})`, async (model, shop) => {
    const { receiver } = at(shop, nth);
    receiver.answer(500);
    await tell(events.map((type) => ({ type, partner: 0 }))).run(model, shop);
    for (let attempt = 1; attempt <= 8; attempt++) {
      await shop.quiet();
      if (!(await hasRetries(shop, [at(shop, nth)]))) break;
      await placeRetries(shop, true);
    }
    receiver.answer(200);
  });

const endpoint_nth = fc.nat({ max: 2 });
const type = fc.constantFrom(...types);
const event = fc.record({ type, partner: fc.constantFrom(0 as const, 1 as const) });
const few = fc.array(event, { minLength: 1, maxLength: 5 }).map(tell);
const many = fc.array(event, { minLength: 30, maxLength: 80, size: 'max' }).map(tell);
const manner = fc.constantFrom<Manner>(500, 'close');
/** Those that are listed more than once come more often. */
export const commands = [
  ...[few, few, few, few, many, many, many],
  fc.tuple(endpoint_nth, manner, fc.integer({ min: 1, max: 5 })).map((given) => answer(...given)),
  fc.tuple(endpoint_nth, fc.constantFrom<Manner>(200, 500)).map((given) => answer(...given)),
  endpoint_nth.map((nth) => answer(nth, 'slow', 1)),
  fc.constant(rest()),
  endpoint_nth.map(rotate),
  endpoint_nth.map(disable),
  ...[endpoint_nth.map(enable), endpoint_nth.map(enable)],
  fc.tuple(endpoint_nth, fc.nat()).map((given) => replayOne(...given)),
  ...[endpoint_nth.map(replayFailed), endpoint_nth.map(replayFailed)],
  fc.boolean().map(retry),
  fc.tuple(endpoint_nth, fc.array(type, { maxLength: 4 })).map((given) => giveUp(...given)),
];

const at = ({ endpoints }: WatchedShop, nth: number): WatchedEndpoint => endpoints[nth] as WatchedEndpoint;

const hasRetries = async (shop: WatchedShop, endpoints: WatchedEndpoint[]): Promise<boolean> =>
  (await Promise.all(endpoints.map(shop.deliveries))).flat().some(({ next_attempt_at }) => next_attempt_at !== null);

/** Those that are due, and no others, get new queue positions, in the order of their old ones. */
async function placeRetries(shop: WatchedShop, isDue: boolean): Promise<void> {
  const read = () => Promise.all(shop.endpoints.map(shop.deliveries));
  const before = await read();
  const at = Date.now() + (isDue ? 2 * day_ms : 0) + ++ticks;
  await shop.placeRetries(new Date(at).toISOString());
  for (const [nth, deliveries] of (await read()).entries()) {
    const position = new Map(deliveries.map((each) => [each.id, each.queue_position]));
    const retries = (before[nth] as Json[])
      .filter(({ next_attempt_at }) => next_attempt_at !== null)
      .toSorted((a, b) => a.queue_position - b.queue_position);
    let last = 0;
    for (const { id, queue_position: old, next_attempt_at } of retries) {
      // It has become due since.
      if (!isDue && Date.parse(next_attempt_at) <= at) continue;
      if (position.get(id) > old !== isDue) throw new Error(`${id} was ${isDue ? 'not ' : ''}enqueued again.`);
      if (position.get(id) <= last) throw new Error(`${id} was enqueued before others that it came after.`);
      last = position.get(id);
    }
  }
}

/** From now on everything is acknowledged, and what waits for its retry gets it. */
export async function comeToRest(shop: WatchedShop): Promise<void> {
  for (const { receiver } of shop.endpoints) receiver.answer(200);
  await shop.quiet();
  while (await hasRetries(shop, shop.endpoints)) {
    await placeRetries(shop, true);
    await shop.quiet();
  }
}
