import { z } from 'zod';
import { taskOutsideTransaction } from '../../src/core/jobs/task.ts';
import { transaction } from '../../src/core/postgres/transaction.ts';
import { backfillSome } from '../../src/program/processors/backfill.ts';
import { processor_names } from '../../src/program/processors/processor.ts';
import { backfillLater } from '../../src/program/processors/start_backfill.ts';

/** Reads some pages of the history of a billing processor, and leaves the next ones to another job. */
export default taskOutsideTransaction({
  payload: z.object({
    ...{ organization_id: z.string(), program_id: z.string(), processor: z.enum(processor_names) },
    ...{ since: z.iso.datetime(), dry_run: z.boolean() },
  }),
  async run({ payload, ...context }) {
    if (!(await backfillSome(payload, context))) return;
    const { organization_id, ...wanted } = payload;
    await transaction(context.store, { organization_id, request_id: null }, async (tx) => backfillLater(tx, wanted));
  },
});
