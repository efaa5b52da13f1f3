/** The addresses in what a channel says of itself: read by the API of its platform, where somebody set that up. */
import type { TaskContext } from '../../core/jobs/worker_context.ts';
import { type Tx, transaction } from '../../core/postgres/transaction.ts';
import type { FoundAddress } from '../contact/add_address.ts';
import { profileUrl } from '../pages/key.ts';
import type { Prospect } from '../prospects/prospect.ts';
import { ProviderFailure } from '../search_providers/provider.ts';
import { accessTo, dispatcherFor } from '../search_providers/provider_access.ts';
import { takeUnits } from '../search_providers/quota.ts';

const call_timeout_ms = 15_000;
const most_addresses = 5;

/** The best first. None where the channel has no such API, nobody set it up, its quota is used up, or it does not answer. */
export async function addressesOfChannel(
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
  if (!(await takeUnits(store, 'youtube', access.credentials, units_of_channels))) return undefined;
  const dispatcher = await dispatcherFor(access, services);
  try {
    return await describeChannel(key, { ...access, dispatcher, cut_off, timeout_ms: call_timeout_ms });
  } catch (error) {
    if (error instanceof ProviderFailure) return undefined;
    throw error;
  }
}
