/** Sending by PayPal, Wise or Stripe: the intents of many payouts in a few statements. */
import sql from 'sql-template-tag';
import type { Tx } from '../../../core/postgres/transaction.ts';
import { tenant } from '../../../core/resource/resource.ts';
import type { Services } from '../../../core/resource/services.ts';
import { event } from '../../events/event.ts';
import { type Payout, payouts } from '../payout.ts';
import type { RailMode, RailName, Transfer } from '../rails/rail.ts';
import { nextPollAt } from './poll_time.ts';

/** A payout that is sent, which the caller has locked. */
export interface Sending {
  payout: Payout;
  rail: RailName;
  mode: RailMode;
  /** The version of the credentials. */
  version: number;
  hint: string | null;
  transfer: Transfer;
}

/** Each becomes `processing` with a new attempt, `payout.updated`, and a job calls the rails. */
export async function sendByRails(tx: Tx, services: Pick<Services, 'vault'>, sendings: Sending[]): Promise<void> {
  if (sendings.length === 0) return;
  await insertAttempts(tx, services, sendings);
  const before = new Map(sendings.map(({ payout }) => [payout.id, payout.status]));
  const { organization_id, request_id } = tx;
  const submitted = await submit(tx, sendings);
  for (const payout of submitted) {
    tx.emit(event('payout.updated', payout, { previous_status: before.get(payout.id) as string }));
  }
  tx.enqueue('program/submit_payouts', {
    ...{ organization_id, request_id },
    payouts: submitted.map(({ id, attempt }) => ({ id, number: attempt })),
  });
}

function insertAttempts(tx: Tx, { vault }: Pick<Services, 'vault'>, sendings: Sending[]): Promise<object[]> {
  const rows = sendings.map(({ payout, rail, mode, version, hint, transfer }) => ({
    ...{
      id: transfer.idempotency_key,
      payout_id: payout.id,
      program_id: payout.program_id,
      number: payout.attempt + 1,
    },
    ...{ rail, mode, credentials_version: version, amount_minor: payout.amount_minor, currency: payout.currency },
    request: vault.encrypt(JSON.stringify(transfer), transfer.idempotency_key).toString('hex'),
    destination_hint: hint,
  }));
  return tx.all(sql`
    insert into program.payout_attempt (
      organization_id, payout_id, number, id, program_id, rail, mode, credentials_version, amount_minor, currency, request, destination_hint,
      status, next_poll_at, began_at
    )
    select ${tx.organization_id}, r.payout_id, r.number, r.id, r.program_id, r.rail, r.mode, r.credentials_version, r.amount_minor, r.currency,
      decode(r.request, 'hex'), r.destination_hint, 'prepared', ${nextPollAt('prepared', 0, tx.now)}::timestamptz, ${tx.now}::timestamptz
    from json_to_recordset(${JSON.stringify(rows)}::json) as r (
      payout_id text, number integer, id text, program_id text, rail text, mode text, credentials_version integer, amount_minor bigint,
      currency text, request text, destination_hint text
    )`);
}

function submit(tx: Tx, sendings: Sending[]): Promise<Payout[]> {
  const rows = sendings.map(({ payout, rail, mode, hint }) => ({
    id: payout.id,
    rail,
    livemode: mode !== 'test',
    hint,
  }));
  return tx.all<Payout>(sql`
    with submitted as (
      update program.payout t
      set status = 'processing', livemode = s.livemode, submitted_at = ${tx.now}::timestamptz, attempt = t.attempt + 1, method = s.rail,
        destination_hint = s.hint, external_id = null, failed_at = null, fee_minor = null, error_code = null, error_message = null, held_reason = null, held_until = null,
        updated_at = ${tx.now}::timestamptz
      from json_to_recordset(${JSON.stringify(rows)}::json) as s (id text, rail text, livemode boolean, hint text)
      where ${tenant(tx)} and t.id = s.id
      returning ${payouts.columns}
    )
    select submitted.* from submitted order by id`);
}
