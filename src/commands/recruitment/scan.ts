import sql from 'sql-template-tag';
import { type Store, transaction } from '../../core/postgres/transaction.ts';
import { formatMoney } from '../../program/payouts/money_text.ts';
import { createScan, type Scan, scans } from '../../recruitment/discovery/scan.ts';
import { choose } from '../chosen.ts';
import { answer, requireWorker, withStore } from '../command.ts';
import { table } from '../output/table.ts';
import { grouped } from '../payouts/tables.ts';
import { catchStop } from '../process.ts';
import { type Followed, followScan, leave, readScan, requireNoFailure } from './follow.ts';
import { organizationOfBrand, organizationOfRun } from './tenant.ts';

const most_listed = 20;

interface Options {
  follow?: boolean;
  json?: boolean;
}

/** `rail scan`: starts a scan of a brand. */
export async function startScan({ brand, ...options }: Options & { brand?: string }): Promise<void> {
  const stopping = catchStop();
  await withStore(async (opened) => {
    const { store } = opened;
    const { id, organization_id } = await choose(opened, 'brand', brand);
    await requireWorker(store, 'nothing would run the scan');
    const scan = await transaction(store, { organization_id, request_id: null }, (tx) => createScan(tx, id));
    await say({ store, organization_id, stopping }, scan, options);
  });
}

/** `rail scan status`. */
export async function showScan(id: string, options: Options): Promise<void> {
  const stopping = catchStop();
  await withStore(async ({ store }) => {
    const organization_id = await organizationOfRun(store.database, 'scan', id);
    const followed = { store, organization_id, stopping };
    await say(followed, await readScan(followed, id), options);
  });
}

async function say(followed: Followed, scan: Scan, { follow, json }: Options): Promise<void> {
  if (!follow) return answer(scan, { json, lines: scanLines(scan) });
  if (scan.finished_at === null) console.error(`Following ${scan.id}. Ctrl-C leaves it to the worker.`);
  const ended = await followScan(followed, scan.id);
  if (ended.finished_at === null) return leave('scan', scan.id);
  answer(ended, { json, lines: scanLines(ended) });
  requireNoFailure(ended);
}

export function scanLines({ id, state, trigger, visits, visits_left, found, spent_minor, error }: Scan): string[] {
  return [
    `${id} is ${state.replaceAll('_', ' ')}${error === null ? '.' : `: ${error}`}`,
    `Trigger ${trigger}: ${grouped(visits - visits_left)} of ${grouped(visits)} pages visited, ${grouped(found)} prospects found, ${formatMoney(spent_minor, 'USD')} spent.`,
  ];
}

/** `rail scan list`: the latest scans. */
export const listScans = ({ brand, json }: { brand?: string; json?: boolean }): Promise<void> =>
  withStore(async ({ store }) => {
    const listed = await latest(store, brand);
    answer(listed, { json, lines: listLines(listed) });
  });

async function latest(store: Store, brand: string | undefined): Promise<Scan[]> {
  const organization_id = brand === undefined ? null : await organizationOfBrand(store.database, brand);
  return transaction(store, { organization_id, request_id: null }, (tx) =>
    tx.all<Scan>(sql`
      select ${scans.columns}
      from ${scans.from}
      where ${scans.alive} and (${brand ?? null}::text is null or t.brand_id = ${brand ?? null})
      order by t.created_at desc, t.id desc
      limit ${most_listed}`),
  );
}

function listLines(listed: Scan[]): string[] {
  const rows = listed.map(({ id, brand_id, created_at, trigger, state, visits, visits_left, found, error }) => [
    ...[id, brand_id, created_at, trigger, state.replaceAll('_', ' ')],
    ...[grouped(visits - visits_left), grouped(visits), grouped(found), error ?? ''],
  ]);
  const columns = ['SCAN', 'BRAND', 'CREATED AT', 'TRIGGER', 'STATE', 'VISITED', 'PAGES', 'FOUND', 'ERROR'];
  return table(columns, rows, 'There is no scan.');
}
