/** The operation by which a worker reads the history of a billing processor. */
import { z } from 'zod';
import type { Tx } from '../../core/postgres/transaction.ts';
import { type Operation, operation } from '../../core/resource/operation.ts';
import { pastTimestamp, requireState } from '../../core/values/fields.ts';
import { programs } from '../programs/program.ts';
import { beginning, noteProgress, progressOf, type Wanted } from './backfill.ts';
import { path, processorParams } from './connect.ts';
import { connectionOf, ProcessorRecord } from './connection.ts';

export const backfillOperations: Operation[] = [
  operation({
    name: 'processors.backfill',
    title: 'Read the history of a processor',
    method: 'POST',
    path: `${path}/backfill`,
    scope: 'programs:write',
    summary: 'Takes in what happened at a billing processor before the program was connected to it.',
    doc: 'A worker reads the history page by page; `backfill` of the connection says how far it is, and when it is `done`. What is known already is left out, so that a second one finds nothing new. If it ends early, the same request goes on where it ended. `npx --no rail processor backfill` does the same on the command line.',
    params: processorParams,
    body: z.strictObject({
      since: pastTimestamp.describe('The time from which on the history is read.'),
      dry_run: z.boolean().default(false).describe('True: only count what would be taken in.'),
    }),
    reply: ProcessorRecord,
    status: 202,
    errors: ['invalid_state_transition'],
    async run({ tx, params: { id: program_id, processor }, body: { since, dry_run }, services }) {
      await programs.get(tx, program_id, { lock: true });
      const { id, status } = await connectionOf(tx, program_id, processor, services);
      requireState(status === 'connected', 'The processor refuses the key. Set the credentials again first.');
      const kept = await progressOf(tx, id);
      const is_same = kept?.since === since && kept.dry_run === dry_run;
      requireState(
        kept?.status !== 'running' || is_same,
        `A backfill since ${kept?.since} is running. Wait until it is done.`,
      );
      const progress = is_same && kept.status !== 'done' ? kept : beginning(since, dry_run, tx.now);
      await noteProgress(tx, id, { ...progress, status: 'running', error: null });
      backfillLater(tx, { program_id, processor, since, dry_run });
      return connectionOf(tx, program_id, processor, services);
    },
  }),
];

export const backfillLater = (tx: Tx, wanted: Omit<Wanted, 'organization_id'>): void =>
  tx.enqueue(
    'program/backfill_processor',
    { organization_id: tx.organization_id, ...wanted },
    { job_key: `backfill:${wanted.program_id}:${wanted.processor}` },
  );
