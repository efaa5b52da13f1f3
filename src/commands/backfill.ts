/** `rail processor backfill`: takes in what happened at a billing processor before a program was connected to it. */
import sql from 'sql-template-tag';
import { run } from '../core/postgres/database.ts';
import { writeEvents } from '../products.ts';
import { backfill, type Progress } from '../program/processors/backfill.ts';
import { billing, isProcessorName } from '../program/processors/processors.ts';
import { openServices } from '../service.ts';
import { answer, UsageError, warnWithoutWorker, withStore } from './command.ts';

interface BackfillOptions {
  program: string;
  since: string;
  dryRun?: boolean;
  json?: boolean;
}

export const backfillProcessor = (name: string, options: BackfillOptions): Promise<void> =>
  withStore(async ({ config, log, store }) => {
    if (!isProcessorName(name))
      throw new UsageError(`There is no billing processor '${name}': it is one of ${Object.keys(billing).join(', ')}.`);
    const { program: program_id, since, dryRun: dry_run = false, json } = options;
    const organization_id = await organizationOf(store.database, program_id);
    const context = {
      store: { ...store, writeEvents },
      services: await openServices(config, log, store.database),
      cut_off: new AbortController().signal,
    };
    if (!dry_run) await warnWithoutWorker(store, 'what is taken in is not worked on');
    const show = (progress: Progress) => console.error(`rail: ${textOf(progress, dry_run)} so far`);
    const done = await backfill({ organization_id, program_id, processor: name, since, dry_run }, context, show);
    const { read, found } = done;
    answer(
      { processor: name, program_id, since, dry_run, read, found },
      { json, lines: [`${textOf(done, dry_run)}.`] },
    );
  });

const textOf = ({ read, found }: Progress, dry_run: boolean): string =>
  `${read} read, ${found} new${dry_run ? ' (dry run: nothing is taken in)' : ''}`;

async function organizationOf(database: Parameters<typeof run>[0], program_id: string): Promise<string> {
  const [found] = await run<{ organization_id: string }>(
    database,
    sql`select organization_id from program.program where id = ${program_id}`,
  );
  if (found) return found.organization_id;
  throw new Error(`There is no program '${program_id}'.`);
}
