import sql from 'sql-template-tag';
import { z } from 'zod';
import type { Tx } from '../../../core/postgres/transaction.ts';
import { idParams, type Operation, operation } from '../../../core/resource/operation.ts';
import { tenant } from '../../../core/resource/resource.ts';
import { Problem } from '../../../core/values/problem.ts';
import { payoutBatches } from '../payout_batch.ts';
import { contentOf, file_types, type StoredFile } from './file_content.ts';

const wrong_number = 'must be the number of a file, such as 1';
const file_number = z
  .preprocess(
    (given) => (typeof given === 'string' && /^[0-9]{1,9}$/.test(given) ? Number(given) : given),
    z.int(wrong_number).min(1, wrong_number),
  )
  .optional()
  .meta({ description: 'The number of the file, as `files` of the batch lists them. Required if there are several.' });

export const payoutFileOperations: Operation[] = [
  operation({
    name: 'payout_batches.export',
    method: 'GET',
    path: '/v1/payout_batches/{id}/export',
    scope: 'payouts:send',
    title: 'Export a payment file',
    summary: 'Returns a file of payouts by bank transfer, wire or crypto.',
    doc: 'Sending the payouts creates the file. The export changes nothing, and returns the same bytes each time. `bank_transfer` and `wire` are ISO 20022 pain.001.001.09 (`application/xml`), for upload to your bank; `crypto` is CSV. The file holds the account numbers of partners, so the export requires `payouts:send`.',
    params: idParams,
    query: z.strictObject({ file: file_number }),
    reply: z.string(),
    errors: ['missing_parameter', 'invalid_state_transition'],
    run: () => Promise.reject(new Error('The export is a file.')),
    file: {
      media_types: file_types,
      only: true,
      async open({ tx, params, query, services }) {
        const { id } = await payoutBatches.get(tx, params.id);
        return contentOf(tx, services.vault, await fileOf(tx, id, query.file));
      },
    },
  }),
];

/** @throws Problem invalid_state_transition, missing_parameter, resource_not_found */
export async function fileOf(tx: Tx, batch_id: string, number: number | undefined): Promise<StoredFile> {
  const files = await tx.all<StoredFile>(sql`
    select t.id, t.batch_id, t.number, t.rail as method, t.debtor, t.created_at,
      (select a.mode from program.payout_attempt a where a.organization_id = t.organization_id and a.file_id = t.id limit 1) as mode
    from program.payout_file t
    where ${tenant(tx)} and t.batch_id = ${batch_id}
    order by t.number`);
  const [first, second] = files;
  if (!first) {
    throw new Problem(
      'invalid_state_transition',
      'The batch has no file yet. Send its payouts by bank transfer, wire or crypto first.',
    );
  }
  if (number === undefined && second) {
    throw new Problem('missing_parameter', `The batch has ${files.length} files: ${listed(files)}. Name one of them.`, {
      param: 'file',
    });
  }
  const file = number === undefined ? first : files.find((one) => one.number === number);
  if (file) return file;
  throw new Problem('resource_not_found', `The batch has no file ${number}. Its files are ${listed(files)}.`, {
    param: 'file',
  });
}

const most_listed = 20;

const listed = (files: StoredFile[]): string => {
  const numbers = files.slice(0, most_listed).map(({ number }) => number);
  return `${numbers.join(', ')}${files.length > most_listed ? ', …' : ''}`;
};
