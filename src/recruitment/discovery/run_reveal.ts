/**
 * The task of a reveal: visits the prospect's pages, and keeps the addresses that it finds.
 *
 * - A YouTube channel is asked for by the data API first, where a key is set: addresses in its description have the source `channel_api`, and where one is
 *   usable no page is visited. A unit of the key's quota.
 * - It begins at the home page of the site; an account on a platform, at its own page.
 * - A third worker that dies with it ends it: `failed`, with the credit back.
 */
import sql from 'sql-template-tag';
import type { TaskContext } from '../../core/jobs/worker_context.ts';
import { type Tx, transaction } from '../../core/postgres/transaction.ts';
import { databaseTime } from '../../core/values/clock.ts';
import type { Reveal } from '../addresses/reveal.ts';
import { addAddresses, type FoundAddress } from '../contact/add_address.ts';
import { usableAddresses } from '../contact/email_status.ts';
import { isOneSite, profileUrl, webAddress } from '../pages/key.ts';
import { refundCredit } from '../plan/credit.ts';
import type { Prospect } from '../prospects/prospect.ts';
import { ProviderFailure } from '../search_providers/provider.ts';
import { accessTo, dispatcherFor, spendUnits } from '../search_providers/provider_access.ts';
import { Visits } from './visits.ts';

const most_attempts = 3;

interface RevealId {
  organization_id: string;
  prospect_id: string;
}

export async function runReveal(id: RevealId, context: TaskContext): Promise<void> {
  const within = <T>(work: (tx: Tx) => Promise<T>) =>
    transaction(context.store, { organization_id: id.organization_id, request_id: null }, work);
  const site = await within((tx) => begin(tx, id.prospect_id));
  if (site === undefined) return;
  const from_channel = await addressesOfChannel(id.organization_id, site, context);
  const { isDead } = await import('../addresses/reveal.ts');
  if (from_channel.some((address) => !isDead(address))) {
    return within((tx) =>
      record(tx, id.prospect_id, { found: from_channel, visited: 0, home: 'page', reason: null }, context),
    );
  }
  const { addresses, visited, home, reason } = await visitPages(site.home, context);
  const found = addresses.map(({ email, source_url, verification }) => ({
    ...{ email, source_url, verification, source: 'page' as const },
  }));
  await within((tx) =>
    record(tx, id.prospect_id, { found: [...found, ...from_channel], visited: visited.length, home, reason }, context),
  );
}

async function visitPages(home: string, context: TaskContext): Promise<Reveal> {
  const { revealAddresses } = await import('../addresses/reveal.ts');
  const { services, cut_off } = context;
  const visits = context.use(Visits);
  return revealAddresses(home, {
    visitor: await visits.visitor(),
    read: (page) => visits.reader.contacts(page),
    nameServers: services.name_servers,
    now: () => new Date(databaseTime()).toISOString(),
    signal: cut_off,
  });
}

/** The page at which a reveal begins. */
interface Site extends Pick<Prospect, 'channel' | 'key'> {
  home: string;
}

interface Open extends Pick<Prospect, 'channel' | 'key'> {
  url: string | null;
  attempts: number;
}

/** Undefined where it is over, or the prospect was erased. */
const openReveal = (tx: Tx, prospect_id: string): Promise<Open | undefined> =>
  tx.maybe<Open>(sql`
    select p.url, p.channel, p.key, t.attempts
    from recruitment.reveal t
    join recruitment.prospect p on p.organization_id = t.organization_id and p.id = t.prospect_id
    where t.organization_id = ${tx.organization_id} and t.prospect_id = ${prospect_id} and t.state in ('queued', 'running')
    for no key update of t`);

/** @returns where to begin; undefined where nothing is to be done */
async function begin(tx: Tx, prospect_id: string): Promise<Site | undefined> {
  const open = await openReveal(tx, prospect_id);
  if (!open) return undefined;
  const home = open.url === null ? undefined : homeOf(open.url);
  if (home === undefined) return giveUp(tx, prospect_id, 'The prospect has no website.');
  if (open.attempts >= most_attempts) return giveUp(tx, prospect_id, 'Interrupted too often.');
  await tx.all(sql`
    update recruitment.reveal t
    set state = 'running', attempts = ${open.attempts + 1}, updated_at = ${tx.now}::timestamptz
    where t.organization_id = ${tx.organization_id} and t.prospect_id = ${prospect_id}`);
  return { home, channel: open.channel, key: open.key };
}

/** The home page of a site; of an account on a site that many share its own page. */
function homeOf(url: string): string | undefined {
  const parsed = webAddress(url);
  if (!parsed) return undefined;
  const home = `${parsed.origin}/`;
  return isOneSite(home, parsed.href) ? home : parsed.href;
}

async function giveUp(tx: Tx, prospect_id: string, reason: string): Promise<undefined> {
  await end(tx, prospect_id, { state: 'failed', addresses: 0, pages: 0, reason });
  return undefined;
}

interface Revealed extends Pick<Reveal, 'home' | 'reason'> {
  found: FoundAddress[];
  /** The number of pages. */
  visited: number;
}

async function record(
  tx: Tx,
  prospect_id: string,
  { found, visited: pages, home, reason }: Revealed,
  { services }: TaskContext,
): Promise<void> {
  // It locks the prospect before its reveal is locked, as a request does.
  if (found.length > 0 && (await addAddresses(tx, services.vault, prospect_id, found)) === undefined) return;
  if (!(await openReveal(tx, prospect_id))) return;
  const { size: addresses } = await usableAddresses(tx, prospect_id);
  if (addresses > 0) return end(tx, prospect_id, { state: 'found', addresses, pages, reason: null });
  await end(tx, prospect_id, { ...outcomeOf(home, reason), addresses, pages });
}

function outcomeOf(home: Reveal['home'], reason: string | null): Pick<Ending, 'state' | 'reason'> {
  const is_read = home === 'page' || home === 'not_html';
  return { state: is_read ? 'not_found' : 'failed', reason: reason ?? 'The pages show no usable address.' };
}

interface Ending {
  state: 'found' | 'not_found' | 'failed';
  addresses: number;
  pages: number;
  reason: string | null;
}

/** Ends it; where nothing was found, with its credit back. */
async function end(tx: Tx, prospect_id: string, { state, addresses, pages, reason }: Ending): Promise<void> {
  const credit = state === 'found' ? 'taken' : 'refunded';
  await tx.all(sql`
    update recruitment.reveal t
    set state = ${state}, addresses = ${addresses}, pages = ${pages}, reason = ${reason}, credit = ${credit},
      finished_at = ${tx.now}::timestamptz, updated_at = ${tx.now}::timestamptz
    where t.organization_id = ${tx.organization_id} and t.prospect_id = ${prospect_id}`);
  if (credit === 'refunded') await refundCredit(tx, 'reveal', { prospect_id });
}

const call_timeout_ms = 15_000;
const most_addresses = 5;

/** The addresses in what a channel says of itself, read by the API of its platform; the best first. None where the channel has no such API, nobody set it up, its quota is used up, or it does not answer. */
async function addressesOfChannel(
  organization_id: string,
  { channel, key }: Pick<Prospect, 'channel' | 'key'>,
  context: TaskContext,
): Promise<FoundAddress[]> {
  if (channel !== 'youtube') return [];
  const description = await descriptionOf(organization_id, key, context);
  if (description === undefined) return [];
  const [{ addressesInText }, { isDecoy, parseAddress }, { placeOf }, { verifyAddress }] = await Promise.all([
    import('../addresses/text.ts'),
    import('../addresses/address.ts'),
    import('../addresses/place.ts'),
    import('../addresses/verify.ts'),
  ]);
  const written = addressesInText(description).flatMap(({ email }) => parseAddress(email) ?? []);
  const emails = [...new Set(written)].filter((email) => !isDecoy(email)).slice(0, most_addresses);
  const { services, cut_off } = context;
  const found = emails
    .toSorted((one, other) => placeOf(one, false) - placeOf(other, false))
    .map(async (email) => ({
      ...{ email, source: 'channel_api' as const, source_url: profileUrl(channel, key) },
      verification: await verifyAddress(email, { nameServers: services.name_servers, signal: cut_off }),
    }));
  return Promise.all(found);
}

async function descriptionOf(
  organization_id: string,
  key: string,
  { store, services, cut_off }: TaskContext,
): Promise<string | undefined> {
  const access = await transaction(store, { organization_id, request_id: null }, (tx: Tx) =>
    accessTo(tx, 'youtube', services),
  );
  if (!access) return undefined;
  const { describeChannel, units_of_channels } = await import('../search_providers/youtube.ts');
  if (!(await spendUnits(store, 'youtube', access.credentials, units_of_channels))) return undefined;
  const dispatcher = await dispatcherFor(access, services);
  try {
    return await describeChannel(key, { ...access, dispatcher, cut_off, timeout_ms: call_timeout_ms });
  } catch (error) {
    if (error instanceof ProviderFailure) return undefined;
    throw error;
  }
}
