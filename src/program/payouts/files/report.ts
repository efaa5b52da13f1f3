import sql from 'sql-template-tag';
import { z } from 'zod';
import { sha256 } from '../../../core/encryption/vault.ts';
import type { Tx } from '../../../core/postgres/transaction.ts';
import { idParams, type Operation, operation } from '../../../core/resource/operation.ts';
import { tenant } from '../../../core/resource/resource.ts';
import type { Services } from '../../../core/resource/services.ts';
import { id, objectName, text, timestamp } from '../../../core/values/fields.ts';
import { newId } from '../../../core/values/id.ts';
import { alreadyExists } from '../../../core/values/problem.ts';
import type { BankReport } from '../bank/bank_report.ts';
import { payoutBatches } from '../payout_batch.ts';
import type { StoredResult } from './apply_report.ts';
import type { ReportedPayment } from './report_outcomes.ts';

const count = z.int().min(0);

const PayoutReport = z
  .object({
    id: id('rep'),
    object: objectName('payout_report'),
    batch_id: id('batch'),
    state: z.enum(['running', 'done']).describe('`running`: a worker is settling payouts. `done`: all are settled.'),
    kind: z.enum(['pain.002', 'camt.054']).describe('What the bank sent.'),
    message_id: text.nullable().describe("The bank's id of the report (`MsgId`). Null: none."),
    applied: z
      .array(
        z.object({
          payout_id: id('pyt'),
          status: z
            .enum(['pending', 'processing', 'paid', 'failed', 'deleted'])
            .describe(
              'The status after the report. `deleted`: the payout was deleted before; if the bank paid it, a clawback takes the amount back.',
            ),
        }),
      )
      .describe('The payouts that the report settled, so far.'),
    unchanged: z
      .array(id('pyt'))
      .describe('Payouts whose outcome was known already, or of which the bank refused a second copy.'),
    not_applied: z
      .array(
        z.object({
          payout_id: id('pyt').nullable().describe('The payout. Null: the entry names none.'),
          end_to_end_id: text.nullable().describe('The `EndToEndId` in the file. Null: the entry names none.'),
          reason: text.describe('Why nothing was changed.'),
        }),
      )
      .describe(
        'Entries that changed nothing, and why: such as one of another amount, one that contradicts itself, a rejection that is not definite, or one that names no payment.',
      ),
    waiting: count.describe('Payments that the bank has not finished. What is in `not_applied` does not count.'),
    not_of_batch: count.describe('Payments in the report that are not of this batch.'),
    created_at: timestamp,
  })
  .meta({ id: 'PayoutReport', description: 'A report of a bank on the payouts of a batch, and what it changed.' });

type PayoutReport = z.infer<typeof PayoutReport>;

/** A bank's report that all payments of a file have settled; it repeats the `MsgId` of the file. */
const example_report =
  '<?xml version="1.0" encoding="UTF-8"?><Document xmlns="urn:iso:std:iso:20022:tech:xsd:pain.002.001.10"><CstmrPmtStsRpt><GrpHdr><MsgId>BANK-1</MsgId><CreDtTm>2026-12-16T09:00:00Z</CreDtTm></GrpHdr><OrgnlGrpInfAndSts><OrgnlMsgId>batch-01h455vb4pex5vsknk084sn02q</OrgnlMsgId><OrgnlMsgNmId>pain.001.001.09</OrgnlMsgNmId><GrpSts>ACSC</GrpSts></OrgnlGrpInfAndSts></CstmrPmtStsRpt></Document>';

export const payoutReportOperations: Operation[] = [
  operation({
    name: 'payout_batches.take_in_report',
    method: 'POST',
    path: '/v1/payout_batches/{id}/statuses',
    scope: 'payouts:send',
    title: 'Upload a bank report',
    summary: "Settles payouts by a bank's report: pain.002 or camt.054.",
    doc: 'Send the XML as the field `document`, or as the body with `Content-Type: application/xml`: at most 10 MiB. Payments that the bank settled become `paid`; ones that it rejected for a definite reason, also those of a rejected file or payment information, become `failed`; returned ones become `failed` with `returned`. Each entry is applied by itself: what is not of this batch counts in `not_of_batch`, and an entry that does not fit, such as one of another amount or one that contradicts itself, is listed in `not_applied` and changes nothing. A return of less than was sent is a return, and the difference is the `fee_minor` of the payout. A rejection of a duplicate (`DU01` to `DU05`, `AM05`) says that the bank has the payment already, and changes nothing. So does a rejection of what is paid, one without a definite reason (none, `NARR`, a code of the bank, words of a duplicate), and one of a file that the bank has accepted before: it is listed in `not_applied`, and `POST /v1/payouts/{id}/mark_failed` records that a payment was not made. If a camt.054 has a second debit of a payment, by another reference (`AcctSvcrRef`), a clawback takes it back and the flag `double_payout` is raised; when one of the two comes back, the clawback is voided and the payout stays `paid`. A pain.002 must be on a file of the batch. If it settles many payouts, a worker goes on after the response: `state` is `running`, and `GET` shows when it is `done`. An organization can have two long reports read at once (429 `rate_limit_exceeded`). A report that is already recorded is 409 with the first result in `existing`.',
    params: idParams,
    body: z.strictObject({ document: text.min(1).describe('The XML of the report, as the bank supplied it.') }),
    example: { document: example_report },
    upload: { field: 'document', media_types: ['application/xml', 'text/xml'], most_bytes: 10 * 1024 * 1024 },
    reply: PayoutReport,
    errors: ['resource_already_exists'],
    async ask({ body, caller }) {
      const { readReport } = await import('./read_report.ts');
      return readReport(body.document, caller.organization_id);
    },
    async run({ tx, params, body, asked, services }) {
      const batch = await payoutBatches.get(tx, params.id);
      return takeIn(tx, services, batch.id, body.document, asked);
    },
  }),
  operation({
    name: 'payout_batches.list_reports',
    method: 'GET',
    path: '/v1/payout_batches/{id}/statuses',
    scope: 'payouts:read',
    title: 'List bank reports',
    summary: 'Lists the last ten bank reports that were recorded for a batch, newest first.',
    params: idParams,
    reply: z.object({
      object: objectName('list'),
      data: z.array(PayoutReport).describe('The reports.'),
    }),
    async run({ tx, params }) {
      const batch = await payoutBatches.get(tx, params.id);
      return { object: 'list' as const, data: await reportsOf(tx, batch.id) };
    },
  }),
];

/** @throws Problem resource_already_exists, invalid_parameter */
async function takeIn(
  tx: Tx,
  services: Pick<Services, 'vault'>,
  batch_id: string,
  document: string,
  report: BankReport,
): Promise<PayoutReport> {
  const fingerprint = sha256(document);
  const id = newId('rep');
  const inserted = await tx.maybe(sql`
    insert into program.payout_report (organization_id, id, batch_id, kind, message_id, sha256, result, created_at)
    values (${tx.organization_id}, ${id}, ${batch_id}, ${report.kind}, ${report.report_id ?? ''}, ${fingerprint}, '{}', ${tx.now}::timestamptz)
    on conflict (organization_id, batch_id, sha256) do nothing
    returning 1`);
  if (!inserted) {
    const existing = await storedReport(tx, batch_id, fingerprint);
    throw alreadyExists('document', `The report is already recorded as ${existing.id}.`, existing);
  }
  const [{ contentOfReport }, { applyReport }] = await Promise.all([
    import('./report_outcomes.ts'),
    import('./apply_report.ts'),
  ]);
  const { payments, ...rest } = await contentOfReport(tx, services, batch_id, report);
  // A returned payment was paid before, wherever in the report that stands.
  const keyOf = ({ payout_id, outcome }: ReportedPayment) => `${payout_id} ${outcome === 'returned'}`;
  const left = payments.sort((one, other) => (keyOf(one) < keyOf(other) ? -1 : Number(keyOf(one) > keyOf(other))));
  const result: StoredResult = { applied: [], ...rest, left };
  await applyReport(tx, id, result);
  return storedReport(tx, batch_id, fingerprint);
}

type Row = Omit<PayoutReport, 'object' | 'state' | keyof StoredResult> & { result: StoredResult };

const shown = ({ result: { left, accepted_file: _, ...result }, id, ...row }: Row): PayoutReport => ({
  ...{ id, object: 'payout_report', ...row, message_id: row.message_id || null },
  ...{ state: left.length === 0 ? 'done' : 'running', ...result },
});

const columns = sql`t.id, t.batch_id, t.kind, t.message_id, t.result, t.created_at`;

async function storedReport(tx: Tx, batch_id: string, fingerprint: Buffer): Promise<PayoutReport> {
  return shown(
    await tx.one<Row>(
      sql`select ${columns} from program.payout_report t where ${tenant(tx)} and t.batch_id = ${batch_id} and t.sha256 = ${fingerprint}`,
    ),
  );
}

async function reportsOf(tx: Tx, batch_id: string): Promise<PayoutReport[]> {
  const rows = await tx.all<Row>(
    sql`select ${columns} from program.payout_report t where ${tenant(tx)} and t.batch_id = ${batch_id} order by t.id desc limit 10`,
  );
  return rows.map(shown);
}
