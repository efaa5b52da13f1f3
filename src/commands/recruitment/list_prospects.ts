import type { StreamFormat } from '../../core/formats/format.ts';
import { textOf } from '../../core/formats/row_stream.ts';
import { reading } from '../../core/postgres/reading.ts';
import { type Tx, transaction } from '../../core/postgres/transaction.ts';
import { reasonOf } from '../../core/values/validation.ts';
import type { Prospect } from '../../recruitment/prospects/prospect.ts';
import { prospectList } from '../../recruitment/prospects/read.ts';
import { choose } from '../chosen.ts';
import { answer, UsageError, withStore } from '../command.ts';
import { table } from '../output/table.ts';
import { writeOut } from '../output/whole_file.ts';
import { grouped } from '../payouts/tables.ts';

interface ListOptions {
  brand?: string;
  q?: string;
  stage?: string;
  limit: number;
  json?: boolean;
}

const scopes = ['prospects:read'];

/** `rail prospects list`: the newest prospects of a brand, or those that a text finds. */
export const listProspects = ({ brand, q, stage, limit, json }: ListOptions): Promise<void> =>
  withStore(async (opened) => {
    const { store } = opened;
    const { id: brand_id, organization_id } = await choose(opened, 'brand', brand);
    const query = queryOf({ brand_id, limit, q, stage });
    const page = await transaction(store, { organization_id, request_id: null }, (tx) =>
      prospectList.page(tx, query, scopes),
    );
    answer(page, { json, lines: linesOf(page.data as unknown as Prospect[], page.total_count) });
  });

/** @throws UsageError for what the API would refuse */
function queryOf(given: object): Record<string, unknown> {
  const query = prospectList.query.safeParse(Object.fromEntries(Object.entries(given).filter(([, value]) => value)));
  if (query.success) return query.data;
  const [issue] = query.error.issues;
  throw new UsageError(issue ? `--${issue.path.join('.')} ${reasonOf(issue)}.` : 'The options are not valid.');
}

function linesOf(prospects: Prospect[], total: number): string[] {
  const rows = prospects.map(({ id, channel, key, name, stage, score, email_status }) => [
    ...[id, channel, key, name ?? '', stage, score ?? '', email_status],
  ]);
  const more = total > rows.length ? ['', `${rows.length} of ${grouped(total)}.`] : [];
  return [
    ...table(['ID', 'CHANNEL', 'KEY', 'NAME', 'STAGE', 'SCORE', 'EMAIL'], rows, 'There is no prospect.'),
    ...more,
  ];
}

interface ExportOptions {
  brand?: string;
  format: StreamFormat;
  out?: string;
}

/** `rail prospects export`: all prospects of a brand, as the API lists them. */
export const exportProspects = ({ brand, format, out }: ExportOptions): Promise<void> =>
  withStore(async (opened) => {
    const { store } = opened;
    const { id, organization_id } = await choose(opened, 'brand', brand);
    await writeOut(
      out,
      reading(store, { organization_id, request_id: null }, (tx) => textsOf(tx, id, format)),
    );
  });

async function* textsOf(tx: Tx, brand_id: string, format: StreamFormat): AsyncGenerator<string> {
  yield* textOf(await prospectList.stream(tx, queryOf({ brand_id, format }), scopes, format), format);
}
