import { Webhook } from 'standardwebhooks';
import Stripe from 'stripe';
import { type Json, type Rail, sql } from '../../harness.ts';
import type { Request } from './scripted_receiver.ts';
import { type Told, type WatchedEndpoint, type WatchedShop, wants } from './watched_endpoints.ts';

/** The number of deliveries that may be on their way when an endpoint changes, or its sender dies: sent and not written. */
const most_unwritten = 128;
const most_attempts = 8;
const stripe = new Stripe('sk_test_unused');
/** The largest age of a signature. */
const tolerance_s = 300;
/** "Any 2xx within 10 seconds acknowledges": a machine that stands still for as long lets an answer come too late. Timers may be some milliseconds early. */
const late_ms = 9_990;

/** The events that the model expects at an endpoint: `may` where it was switched off before it had everything. */
export type Wanted = Map<number, 'must' | 'may'>;

interface Logged {
  /** The shop's events, in the order of their positions. */
  events: Json[];
  /** The endpoint's deliveries by id. */
  deliveries: Map<string, Json>;
  /** Its attempts by delivery and number. */
  attempts: Map<string, Json>;
  /** Every delivery that was ever enqueued for it, in order. */
  enqueued: { queue_position: number; delivery_id: string; attempt: number }[];
}

/** Notes every delivery that is enqueued, since rows of `webhooks.queued_delivery` go when the result is written. */
export async function notePlaces(rail: Rail): Promise<void> {
  await rail.store.database.query(`
    create table public.enqueued (endpoint_id text not null, queue_position bigint not null, delivery_id text not null, attempt integer not null);
    create index on public.enqueued (endpoint_id, queue_position);
    create function public.note_enqueued() returns trigger language plpgsql security definer as $$
    begin
      insert into public.enqueued values (new.endpoint_id, new.queue_position, new.delivery_id, new.attempt + 1);
      return null;
    end $$;
    create trigger note_enqueued after insert on webhooks.queued_delivery for each row execute function public.note_enqueued()`);
}

/** Returns the faults of a shop whose endpoints are at rest: none, whatever happened to them. */
export async function faultsOf(rail: Rail, shop: WatchedShop, told: Told[], wanted: Wanted[]): Promise<string[]> {
  const faults = [];
  for (const [nth, endpoint] of shop.endpoints.entries()) {
    const logged = await readLog(rail, shop, endpoint);
    const found = [
      ...eventFaults(logged, told),
      ...receiptFaults(logged, endpoint, told, wanted[nth] as Wanted),
      ...requestFaults(logged, endpoint),
      ...sequenceFaults(logged, endpoint),
      ...orderFaults(logged),
      ...signatureFaults(endpoint),
      ...switchFaults(endpoint),
      ...logFaults(logged, endpoint),
    ];
    faults.push(...new Set(found.map((fault) => `endpoint ${nth}: ${fault}`)));
  }
  return faults;
}

async function readLog(rail: Rail, shop: WatchedShop, endpoint: WatchedEndpoint): Promise<Logged> {
  const events = await shop.events();
  const deliveries = await shop.deliveries(endpoint);
  const attempts = await rail.query(sql`
    select a.delivery_id, a.attempt, a.status_code, a.error, a.duration_ms
    from webhooks.attempt a
    join webhooks.delivery d on d.organization_id = a.organization_id and d.id = a.delivery_id
    where d.endpoint_id = ${endpoint.id}`);
  const enqueued = await rail.query<Logged['enqueued'][number]>(
    sql`select queue_position, delivery_id, attempt from public.enqueued where endpoint_id = ${endpoint.id} order by queue_position`,
  );
  return {
    events,
    enqueued,
    deliveries: new Map(deliveries.map((each) => [each.id, each])),
    attempts: new Map(attempts.map((each) => [attemptOf(each.delivery_id, each.attempt), each])),
  };
}

const attemptOf = (delivery_id: string, attempt: number | string): string => `${delivery_id} ${attempt}`;
const attemptIn = ({ headers }: Request): string =>
  attemptOf(headers['rail-delivery-id'] as string, headers['rail-attempt'] as string);

const requestsOf = ({ history }: WatchedEndpoint): Request[] =>
  history.flatMap((happening) => (happening.what === 'request' ? [happening.request] : []));

/** Returns the last request of each attempt: one that was cut off, or whose answer was not written, comes again. */
const lastOf = (endpoint: WatchedEndpoint): Map<string, Request> =>
  new Map(requestsOf(endpoint).map((request) => [attemptIn(request), request]));

/** Checks that the emitted events are the logged ones, in their order. */
function eventFaults({ events }: Logged, told: Told[]): string[] {
  const [is, should_be] = [events, told].map((those) =>
    JSON.stringify(those.map(({ type, partner_id, request_id }) => [type, partner_id, request_id])),
  );
  return is === should_be ? [] : [`logged ${is} instead of ${should_be}`];
}

/** Each event that is wanted comes at least once and is acknowledged, unless it was given up; none comes that is not wanted. */
function receiptFaults(
  { events, deliveries }: Logged,
  endpoint: WatchedEndpoint,
  told: Told[],
  wanted: Wanted,
): string[] {
  const acknowledged = new Set<string>();
  for (const { headers, answered } of requestsOf(endpoint)) {
    if (answered === 200) acknowledged.add(headers['rail-event-id'] as string);
  }
  const firsts = [...deliveries.values()].filter(({ replay_of }) => replay_of === null);
  return told.flatMap((_, nth) => {
    const { id } = events[nth] as Json;
    const [first, ...others] = firsts.filter(({ event_id }) => event_id === id);
    const want = wanted.get(nth);
    const faults: string[] = [];
    if (others.length > 0) faults.push(`event ${nth} has several first deliveries`);
    if (!want && first) faults.push(`event ${nth} is not wanted and has a delivery`);
    if (!want && acknowledged.has(id)) faults.push(`event ${nth} is not wanted and came`);
    if (want === 'must' && !first) faults.push(`event ${nth} has no delivery`);
    if (want === 'must' && first?.status === 'cancelled') faults.push(`event ${nth} was cancelled`);
    if (first?.status === 'delivered' && !acknowledged.has(id)) faults.push(`event ${nth} never arrived`);
    if (first?.status === 'failed' && first.attempt !== most_attempts) faults.push(`event ${nth} was given up early`);
    if (first?.status === 'pending') faults.push(`event ${nth} still waits`);
    return faults;
  });
}

/** Headers and body are those of the event. */
function requestFaults({ events, deliveries }: Logged, endpoint: WatchedEndpoint): string[] {
  return requestsOf(endpoint).flatMap(({ headers, raw }) => {
    const delivery = deliveries.get(headers['rail-delivery-id'] as string);
    const event = events.find(({ id }) => id === delivery?.event_id);
    if (!event) return [`${headers['rail-delivery-id']} is a delivery of nothing`];
    const { id, type, partner_id, request_id, body, postback_body } = event;
    const expected = {
      ...{ 'rail-event': type, 'rail-event-id': id, 'webhook-id': id, 'rail-request-id': request_id },
      'content-type': 'application/json',
    };
    const faults = Object.entries(expected)
      .filter(([name, value]) => headers[name] !== value)
      .map(([name]) => `${name} is ${headers[name]}`);
    if (!wants(endpoint, { type, partner_id })) faults.push(`${type} of ${partner_id} is not for it`);
    if (raw !== (endpoint.partner_id === null ? body : postback_body)) faults.push(`another body: ${raw}`);
    if (endpoint.partner_id !== null && /@|%40/.test(raw)) faults.push(`an email in a postback: ${raw}`);
    const { id: said_id, type: said_type, request } = JSON.parse(raw);
    if (said_id !== id || said_type !== type || request.id !== request_id) faults.push(`another envelope: ${raw}`);
    return faults;
  });
}

/** Requests come one at a time, in the order of the queue. Only one whose sender died, or which was cut off, comes again. */
function sequenceFaults({ enqueued, deliveries }: Logged, endpoint: WatchedEndpoint): string[] {
  const position_of = new Map(
    enqueued.map(({ delivery_id, attempt, queue_position }) => [attemptOf(delivery_id, attempt), queue_position]),
  );
  const faults: string[] = [];
  let at = 0;
  let isKilled = false;
  let mayComeAgain = false;
  for (const happening of endpoint.history) {
    if (happening.what === 'killing') isKilled = true;
    if (happening.what === 'quiet') [isKilled, mayComeAgain] = [false, false];
    if (happening.what !== 'request') continue;
    const { request } = happening;
    const position = position_of.get(attemptIn(request));
    if (position === undefined) {
      faults.push(`${attemptIn(request)} was not enqueued`);
      continue;
    }
    const isAgain: boolean = position === at && mayComeAgain;
    if (position <= at && !isAgain) {
      const back = enqueued.filter((one) => one.queue_position >= position && one.queue_position <= at).length;
      if (!isKilled) faults.push(`${attemptIn(request)} comes again, ${back} back`);
      if (back > most_unwritten) faults.push(`${back} come again`);
      isKilled = false;
    }
    at = position;
    mayComeAgain = !isAgain && request.answered === 'closed';
  }
  const came = new Set(requestsOf(endpoint).map(attemptIn));
  for (const { delivery_id, attempt } of enqueued) {
    const { status, attempt: last } = deliveries.get(delivery_id) as Json;
    const isCancelled = status === 'cancelled' && attempt === last + 1;
    if (!isCancelled && !came.has(attemptOf(delivery_id, attempt))) faults.push(`${delivery_id} ${attempt} is lost`);
  }
  if (endpoint.receiver.most_at_once() > 1) faults.push(`${endpoint.receiver.most_at_once()} requests at once`);
  return faults;
}

/** First deliveries are in the order of their events, and the attempts of each in theirs. */
function orderFaults({ events, deliveries, enqueued }: Logged): string[] {
  const position = new Map(events.map(({ id }, nth) => [id, nth]));
  const faults: string[] = [];
  const made = new Map<string, number>();
  let last = -1;
  for (const { delivery_id, attempt } of enqueued) {
    const { replay_of, event_id } = deliveries.get(delivery_id) as Json;
    if (attempt !== (made.get(delivery_id) ?? 0) + 1) faults.push(`${delivery_id} ${attempt} is out of order`);
    made.set(delivery_id, attempt);
    if (replay_of !== null || attempt > 1) continue;
    const nth = position.get(event_id) ?? -1;
    if (nth <= last) faults.push(`event ${nth} comes after event ${last}`);
    last = nth;
  }
  return faults;
}

/** Both signatures are accepted by those who verify for a living, with each secret that is live. */
function signatureFaults(endpoint: WatchedEndpoint): string[] {
  const faults: string[] = [];
  let known = 0;
  let begun = 0;
  let at_least = 0;
  let stale = 0;
  for (const happening of endpoint.history) {
    if (happening.what === 'rotating') begun = happening.to;
    if (happening.what === 'rotated') [known, stale] = [happening.to, 0];
    if (happening.what === 'quiet') at_least = known;
    if (happening.what !== 'request') continue;
    const accepted = endpoint.secrets.flatMap((secret, nth) => (accepts(secret, happening.request) ? [nth] : []));
    const newest = accepted.at(-1) ?? -1;
    if (accepted.join() !== [newest - 1, newest].filter((nth) => nth >= 0).join())
      faults.push(`signed with the secrets ${accepted}`);
    if (newest < known) stale++;
    if (newest < at_least || newest > begun || stale > most_unwritten)
      faults.push(`signed with secret ${newest}, and the newest is ${known}`);
  }
  return faults;
}

/** By the time at which it came, however long ago that is. @throws Error when the two verifiers differ */
function accepts(secret: string, { raw, headers, at }: Request): boolean {
  const seconds = headers['webhook-timestamp'] as string;
  const isRecent = Math.abs(at / 1_000 - Number(seconds)) <= tolerance_s;
  const verdicts = [
    () => stripe.webhooks.constructEvent(raw, headers['rail-signature'] as string, secret, tolerance_s, undefined, at),
    () => isRecent && isSignedWith(secret, seconds, raw, headers),
  ].map((verify) => {
    try {
      return Boolean(verify());
    } catch {
      return false;
    }
  });
  if (verdicts[0] !== verdicts[1])
    throw new Error(`One verifier accepts, the other does not: ${JSON.stringify(headers)}`);
  return verdicts[0] as boolean;
}

/** Its `verify` goes by the clock: the signature is compared with what it signs itself. */
const isSignedWith = (secret: string, seconds: string, raw: string, headers: Request['headers']): boolean =>
  headers['webhook-signature']
    ?.split(' ')
    .includes(new Webhook(secret).sign(headers['webhook-id'] as string, new Date(Number(seconds) * 1_000), raw)) ===
  true;

/** Nothing is sent to an endpoint that is switched off but what was on its way. */
function switchFaults({ history }: WatchedEndpoint): string[] {
  let isOff = false;
  let late: number | undefined;
  const faults: string[] = [];
  for (const { what } of history) {
    if (what === 'disabled') [isOff, late] = [true, most_unwritten];
    if (what === 'enabling') isOff = false;
    if (what === 'quiet') late = 0;
    if (what === 'request' && isOff && (late as number)-- <= 0) faults.push('it was sent to while it was off');
  }
  return faults;
}

/** The log says what was answered, and each delivery's status follows from it. */
function logFaults({ deliveries, attempts }: Logged, endpoint: WatchedEndpoint): string[] {
  const last = lastOf(endpoint);
  const faults = [...last].flatMap(([attempt, { answered, headers }]) => {
    const { status, attempt: made } = deliveries.get(headers['rail-delivery-id'] as string) ?? {};
    if (status === 'cancelled' && Number(headers['rail-attempt']) === made + 1) return [];
    const logged = attempts.get(attempt);
    const status_code = answered === 'closed' || logged?.duration_ms >= late_ms ? null : answered;
    return logged?.status_code === status_code ? [] : [`${attempt} was ${answered}: ${JSON.stringify(logged)}`];
  });
  for (const { id, status, attempt } of deliveries.values()) {
    const isAcknowledged = attempts.get(attemptOf(id, attempt))?.error === null;
    if (isAcknowledged !== (status === 'delivered')) faults.push(`${id} is ${status} after attempt ${attempt}`);
  }
  return [...faults, ...[...attempts.keys()].filter((attempt) => !last.has(attempt)).map((one) => `${one} never came`)];
}
