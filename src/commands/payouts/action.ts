import type { Operation } from '../../core/resource/operation.ts';
import { payoutChangeOperations } from '../../program/payouts/by_hand/payout_change.ts';
import { formatMoney } from '../../program/payouts/money_text.ts';
import type { Payout } from '../../program/payouts/payout.ts';
import type { PayoutBatch } from '../../program/payouts/payout_batch.ts';
import { methods_by_hand } from '../../program/payouts/payout_state.ts';
import { sendOperations } from '../../program/payouts/sending/send.ts';
import { answer, UsageError, warnWithoutWorker, withStore } from '../command.ts';
import { callOperation } from '../recruitment/call.ts';
import { type Of, organizationOf } from './batch.ts';

type Action = 'send' | 'retry' | 'mark_paid';

interface ActionOptions {
  payout?: string;
  batch?: string;
  externalId?: string;
  paidAt?: string;
  status?: string[];
  file?: number;
  json?: boolean;
}

/** `rail payouts send`, `retry` and `mark-paid`, as the API does them. */
export const actOnPayouts = (action: Action, options: ActionOptions): Promise<void> =>
  withStore(async (opened) => {
    const of = asked(options);
    const organization_id = await organizationOf(opened.store.database, of);
    const [id, plural] = 'batch' in of ? [of.batch, 'payout_batches'] : [of.payout, 'payouts'];
    const operation = operationNamed(`${plural}.${action}`);
    const found = await callOperation<Payout | PayoutBatch>(opened, organization_id, operation, {
      params: { id },
      body: bodyOf(options),
    });
    if (isLeftToWorker(found)) await warnWithoutWorker(opened.store, 'nothing goes on');
    answer(found, { json: options.json, lines: linesOf(found, action) });
  });

/** But for a payout that went into a file, or was marked at once. */
const isLeftToWorker = (found: Payout | PayoutBatch): boolean =>
  !('method' in found) ||
  found.in_progress !== null ||
  (found.status === 'processing' && !methods_by_hand.includes(found.method));

function asked({ payout, batch, status, file }: ActionOptions): Of {
  if (batch !== undefined && payout === undefined) return { batch };
  if (payout === undefined || batch !== undefined) throw new UsageError('Give either --payout or --batch.');
  if (status || file !== undefined) throw new UsageError('--status and --file choose among the payouts of a --batch.');
  return { payout };
}

const operationNamed = (name: string): Operation =>
  [...sendOperations, ...payoutChangeOperations].find((operation) => operation.name === name) as Operation;

const bodyOf = ({ externalId, paidAt, status, file }: ActionOptions): object => ({
  ...(externalId === undefined ? {} : { external_id: externalId }),
  ...(paidAt === undefined ? {} : { paid_at: paidAt }),
  ...(status === undefined ? {} : { statuses: status }),
  ...(file === undefined ? {} : { file }),
});

const requested: Record<Action, string> = {
  send: 'A worker sends its pending payouts.',
  retry: 'A worker sends its failed payouts again.',
  mark_paid: 'A worker marks its payouts as paid.',
};

function linesOf(found: Payout | PayoutBatch, action: Action): string[] {
  if (!('method' in found))
    return [requested[action], `Follow them with: npx --no rail payouts status --batch ${found.id}`];
  const { id, in_progress, status, amount_minor, currency } = found;
  const now = in_progress ? 'being marked as paid by a worker' : status;
  return [`${id} of ${formatMoney(amount_minor, currency)} is ${now}.`];
}
