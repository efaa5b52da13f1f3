/** Prepares a step outside of a transaction, while Postgres is busy with the step before. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Intend } from '../contact/add_to_new.ts';
import type { Mapping } from './mapping.ts';
import { OneSite } from './one_site.ts';
import { type PreparedRow, readRow } from './row.ts';
import type { FileRow } from './rows.ts';

export interface Preparing {
  brand_id: string;
  mapping: Mapping;
  intend: Intend;
}

/** Rows between two turns of the event loop: what else the worker does waits a few milliseconds for them. */
const rows_a_turn = 50;

/** Checks steps of rows, and makes their addresses ready. */
export async function* prepare(steps: AsyncIterable<FileRow[]>, preparing: Preparing): AsyncGenerator<PreparedRow[]> {
  const one_site = new OneSite();
  for await (const rows of steps) {
    const prepared: PreparedRow[] = [];
    for (const row of rows) {
      if (prepared.length > 0 && prepared.length % rows_a_turn === 0) await nextTurn();
      prepared.push(prepareRow(row, preparing, one_site));
    }
    yield prepared;
  }
}

function prepareRow(file_row: FileRow, { brand_id, mapping, intend }: Preparing, one_site: OneSite): PreparedRow {
  const row = one_site.checked(readRow(file_row, brand_id, mapping));
  const { prospect, email } = row;
  return prospect && email ? { ...row, address: intend(email, prospect.key) } : row;
}
