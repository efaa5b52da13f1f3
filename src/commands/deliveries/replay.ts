/** `rail deliveries replay`: as the API does it. */
import sql from 'sql-template-tag';
import { type Database, run } from '../../core/postgres/database.ts';
import type { Operation } from '../../core/resource/operation.ts';
import { products } from '../../products.ts';
import { countReplayed, replayOperations } from '../../webhooks/deliveries/replay.ts';
import type { EventPolicy } from '../../webhooks/events/policy.ts';
import { answer, namingOptions, UsageError, warnWithoutWorker, withStore } from '../command.ts';
import { grouped } from '../payouts/tables.ts';
import { callOperation } from '../recruitment/call.ts';

interface ReplayOptions {
  endpoint?: string;
  failedSince?: string;
  from?: string;
  to?: string;
  json?: boolean;
}

/** Sends a delivery again, or those of an endpoint that failed or were created in a window. */
export const replayDeliveries = (id: string | undefined, options: ReplayOptions): Promise<void> =>
  withStore(async (opened) => {
    const { endpoint, failedSince, from, to, json } = options;
    if ((id === undefined) === (endpoint === undefined))
      throw new UsageError('Give either the id of a delivery, or --endpoint.');
    const body = Object.fromEntries(
      Object.entries({ failed_since: failedSince, from, to }).filter(([, value]) => value !== undefined),
    );
    if (id !== undefined && Object.keys(body).length > 0)
      throw new UsageError('--failed-since, --from and --to choose among the deliveries of an --endpoint.');
    const { organization_id, operation } = await asked(opened.store.database, id, endpoint);
    const params = { id: (id ?? endpoint) as string };
    const calling = callOperation<Replayed>(opened, organization_id, operation, { params, body });
    const found = await namingOptions(['failed_since', 'from', 'to'], calling);
    await warnWithoutWorker(opened.store, 'nothing is sent');
    if (id !== undefined) return answer(found, { json, lines: [`${id} is sent again as ${found.id}.`] });
    const window = { ...found, failed_only: failedSince !== undefined };
    const count = await countReplayed(opened.store.database, organization_id, window, most_counted);
    answer({ ...found, deliveries: count }, { json, lines: [countText(found.endpoint_id, count)] });
  });

/** The answer of either operation: a new delivery, or the window whose deliveries a worker queues. */
interface Replayed {
  id: string;
  endpoint_id: string;
  from: string;
  to: string;
}

/** So many are counted at most. */
const most_counted = 10_000;

function countText(endpoint: string, count: number): string {
  const shown = `'npx --no rail deliveries list --endpoint ${endpoint}' shows`;
  if (count === 0) return `No delivery of ${endpoint} matches: none is sent again. ${shown} what there is.`;
  const many = count < most_counted ? `${grouped(count)} deliveries` : `${grouped(most_counted)} deliveries or more`;
  const said =
    count === 1
      ? `1 delivery of ${endpoint} matches: a worker queues it`
      : `${many} of ${endpoint} match: a worker queues them`;
  return `${said} again. ${shown} what is new.`;
}

async function asked(database: Database, id: string | undefined, endpoint: string | undefined) {
  const [found] = await run<{ organization_id: string }>(
    database,
    id === undefined
      ? sql`select q.organization_id from webhooks.endpoint_queue q where q.endpoint_id = ${endpoint}`
      : sql`select d.organization_id from webhooks.delivery d where d.id = ${id}`,
  );
  if (!found)
    throw new Error(id === undefined ? `There is no endpoint '${endpoint}'.` : `There is no delivery '${id}'.`);
  const prefix = (id ?? (endpoint as string)).split('_')[0];
  const policy = products
    .map(({ events }) => events)
    .find((one) => [one.delivery_prefix, one.endpoint_prefix].includes(prefix as string));
  return {
    ...found,
    operation: operationOf(policy as EventPolicy, id === undefined ? 'webhook_endpoints' : 'webhook_deliveries'),
  };
}

/** @throws UsageError where the product has no such operation */
function operationOf(policy: EventPolicy, plural: string): Operation {
  const operation = replayOperations(policy).find(({ name }) => name === `${plural}.replay`);
  if (operation) return operation;
  throw new UsageError(
    `Endpoints of ${policy.product} have no replay of many deliveries: replay them one by one, by their ids.`,
  );
}
