/** Sending by bank transfer, wire or crypto: what goes into a file is written down once, and never changes afterwards. */
import sql, { type Sql } from 'sql-template-tag';
import type { Tx } from '../../../core/postgres/transaction.ts';
import { insert } from '../../../core/postgres/write.ts';
import { tenant } from '../../../core/resource/resource.ts';
import type { Services } from '../../../core/resource/services.ts';
import { Problem } from '../../../core/values/problem.ts';
import { event } from '../../events/event.ts';
import { payeeName } from '../../partners/partner.ts';
import { bankDay } from '../bank/bank_day.ts';
import { type Creditor, transferRefusal } from '../bank/transfer.ts';
import { credentialsOf, currentRail } from '../credentials/rail_credentials.ts';
import { type Payout, payouts } from '../payout.ts';
import { statusAfter } from '../payout_state.ts';
import type { Credentials, RailMode } from '../rails/rail.ts';
import { asText, type FileMethod, type FrozenTransfer } from './frozen_transfer.ts';

interface PayoutFile {
  id: string;
  method: FileMethod;
  mode: RailMode;
  credentials_version: number | null;
}

/** The debtor. Wallets are paid from one that Rail does not know. */
interface Debtor {
  mode: RailMode;
  version: number | null;
  account: Credentials | null;
}

interface Destination {
  method: string;
  details: Buffer;
  hint: string;
  partner_name: string;
  partner_email: string;
  program_name: string;
}

interface Sending {
  payout: Payout;
  hint: string;
  transfer: FrozenTransfer;
}

/**
 * The files that a transaction makes: one for each batch and method. Payouts are added some at a time, so that memory does not grow with the
 * file, and their events are emitted when all are in.
 */
export class PayoutFiles {
  readonly #tx: Tx;
  readonly #services: Pick<Services, 'vault'>;
  readonly #files = new Map<string, PayoutFile>();
  /** Payouts that failed and were never sent: they came back after they were marked as paid. */
  readonly #failed_unsent = new Set<string>();

  constructor(tx: Tx, services: Pick<Services, 'vault'>) {
    this.#tx = tx;
    this.#services = services;
  }

  /**
   * Makes payouts of a batch `processing`, each with an attempt that stands in the file. All or none.
   * @param batch_payouts pending or failed ones of the batch, locked, whose partners are paid by the method
   * @throws Problem payout_locked where there is no account to pay from, or one of them cannot be written to a file
   */
  async add(batch_id: string, method: FileMethod, batch_payouts: Payout[]): Promise<void> {
    const [first] = batch_payouts;
    if (!first) return;
    const [tx, { vault }] = [this.#tx, this.#services];
    const debtor = await debtorOf(tx, { vault }, first.program_id, method);
    const destinations = await destinationsOf(tx, batch_payouts);
    const sendings = batch_payouts.map((payout) =>
      sendingOf(tx, vault, method, payout, destinations.get(payout.partner_id)),
    );
    const key = `${batch_id} ${method}`;
    const file =
      this.#files.get(key) ??
      (await insertFile(tx, { vault }, { batch_id, method, program_id: first.program_id, debtor }));
    this.#files.set(key, file);
    for (const { id, status, attempt } of batch_payouts)
      if (status === 'failed' && attempt === 0) this.#failed_unsent.add(id);
    await insertAttempts(tx, { vault }, file, sendings);
    await tx.all(submitting(tx, file, sendings));
  }

  /** `payout.updated` for each payout of the files, in the order of their ids. Call it when all rows are locked that the transaction locks. */
  async emitUpdates(): Promise<void> {
    for (const file of this.#files.values()) await emitUpdated(this.#tx, file, this.#failed_unsent);
    this.#files.clear();
  }
}

async function debtorOf(
  tx: Tx,
  { vault }: Pick<Services, 'vault'>,
  program_id: string,
  method: FileMethod,
): Promise<Debtor> {
  if (method === 'crypto') return { mode: 'live', version: null, account: null };
  const rail = await currentRail(tx, program_id, method);
  if (!rail) {
    throw new Problem(
      'payout_locked',
      `The program has no account that pays by ${method}. Set it with PUT /v1/programs/${program_id}/rails/${method}, then send again.`,
    );
  }
  const { credentials } = await credentialsOf(tx, vault, program_id, method, rail.version);
  return { mode: rail.mode, version: rail.version, account: credentials };
}

/** Reads the partners' payout methods at this time, and the names of partners and the program, by partner. */
async function destinationsOf(tx: Tx, batch_payouts: Payout[]): Promise<Map<string, Destination>> {
  const rows = await tx.all<Destination & { partner_id: string }>(sql`
    select t.partner_id, t.method, t.details, t.hint, p.email as partner_email, g.product_name as program_name,
      ${payeeName('p')} as partner_name
    from program.payout_method t
    join program.partner p on p.organization_id = t.organization_id and p.id = t.partner_id
    join program.program g on g.organization_id = p.organization_id and g.id = p.program_id
    where ${tenant(tx)} and t.partner_id = any(${batch_payouts.map(({ partner_id }) => partner_id)})`);
  return new Map(rows.map((row) => [row.partner_id, row]));
}

/** @throws Problem payout_locked */
function sendingOf(
  tx: Tx,
  vault: Services['vault'],
  method: FileMethod,
  payout: Payout,
  destination: Destination | undefined,
): Sending {
  statusAfter(payout, payout.status === 'failed' ? 'retry' : 'send');
  if (destination?.method !== method) {
    throw new Problem('payout_locked', `The partner of ${payout.id} is not paid by ${method} any more. Send it again.`);
  }
  const { details, hint, partner_name, partner_email, program_name } = destination;
  const transfer: FrozenTransfer = {
    idempotency_key: `${payout.id}-${payout.attempt + 1}`,
    payout_id: payout.id,
    ...{ program_name, partner_name, partner_email },
    ...{ amount_minor: payout.amount_minor, currency: payout.currency },
    destination: JSON.parse(vault.decrypt(details, payout.partner_id)) as Record<string, string>,
    began_at: tx.now,
    remittance: `${program_name} ${payout.id}`,
  };
  const refusal = refusalOf(method, transfer);
  if (!refusal) return { payout, hint, transfer };
  throw new Problem(
    'payout_locked',
    `The payout ${payout.id} cannot be sent by ${method}: ${refusal} Correct the payout method of the partner ${payout.partner_id}, or send the other payouts without it.`,
  );
}

function refusalOf(
  method: FileMethod,
  { idempotency_key, amount_minor, currency, destination, remittance }: FrozenTransfer,
): string | null {
  if (method === 'crypto') return null;
  const creditor = destination as unknown as Creditor;
  return transferRefusal({ method, currency }, { key: idempotency_key, amount_minor, creditor, remittance });
}

/** Inserts the batch's next file. Its number waits for others that are being sent. */
async function insertFile(
  tx: Tx,
  { vault }: Pick<Services, 'vault'>,
  given: { batch_id: string; method: FileMethod; program_id: string; debtor: Debtor },
): Promise<PayoutFile> {
  const { batch_id, method, program_id, debtor } = given;
  for (;;) {
    const number = await nextNumber(tx, batch_id);
    const id = `f_${batch_id.slice(-26)}-${number}`;
    const values = {
      ...{ id, program_id, batch_id, number, rail: method, created_at: tx.now },
      debtor: debtor.account && vault.encrypt(JSON.stringify(debtor.account), id),
    };
    const on_conflict = sql`on conflict (organization_id, batch_id, number) do nothing`;
    const inserted = await insert(tx, 'program.payout_file', values, { on_conflict });
    if (inserted) return { id, method, mode: debtor.mode, credentials_version: debtor.version };
  }
}

async function nextNumber(tx: Tx, batch_id: string): Promise<number> {
  const { number } = await tx.one<{ number: number }>(sql`
    select coalesce(max(t.number), 0) + 1 as number from program.payout_file t where ${tenant(tx)} and t.batch_id = ${batch_id}`);
  return number;
}

async function insertAttempts(
  tx: Tx,
  { vault }: Pick<Services, 'vault'>,
  { id: file_id, method, mode, credentials_version }: PayoutFile,
  sendings: Sending[],
): Promise<void> {
  const rows = sendings.map(({ payout, hint, transfer }) => ({
    ...{
      payout_id: payout.id,
      number: payout.attempt + 1,
      id: transfer.idempotency_key,
      program_id: payout.program_id,
    },
    ...{ amount_minor: payout.amount_minor, currency: payout.currency, destination_hint: hint },
    request: vault.encrypt(asText(transfer), transfer.idempotency_key).toString('hex'),
    // The requested execution date: when it is due, or when the file is made where that is later.
    state: { execution_date: bankDay(payout.due_at > tx.now ? payout.due_at : tx.now) },
  }));
  await tx.all(sql`
    insert into program.payout_attempt (
      organization_id, payout_id, number, id, program_id, rail, mode, credentials_version, amount_minor, currency, request, state,
      destination_hint, status, file_id, began_at
    )
    select ${tx.organization_id}, r.payout_id, r.number, r.id, r.program_id, ${method}, ${mode}, ${credentials_version}::integer, r.amount_minor,
      r.currency, decode(r.request, 'hex'), r.state, r.destination_hint, 'processing', ${file_id}, ${tx.now}::timestamptz
    from json_to_recordset(${JSON.stringify(rows)}::json) as r (
      payout_id text, number integer, id text, program_id text, amount_minor bigint, currency text, request text, state jsonb,
      destination_hint text
    )`);
}

const submitting = (tx: Tx, { method, mode }: PayoutFile, sendings: Sending[]): Sql => sql`
  update program.payout t
  set status = 'processing', livemode = ${mode === 'live'}, submitted_at = ${tx.now}::timestamptz, attempt = t.attempt + 1,
    method = ${method}, destination_hint = s.hint, external_id = null, failed_at = null, fee_minor = null, error_code = null, error_message = null,
    held_reason = null, held_until = null, updated_at = ${tx.now}::timestamptz
  from unnest(${sendings.map(({ payout }) => payout.id)}::text[], ${sendings.map(({ hint }) => hint)}::text[]) as s (id, hint)
  where ${tenant(tx)} and t.id = s.id`;

/** The number of payouts of a file whose events are emitted at a time. */
const most_emitted = 1_000;

async function emitUpdated(tx: Tx, { id: file_id }: PayoutFile, failed_unsent: Set<string>): Promise<void> {
  for (let after: string | undefined = ''; after !== undefined; ) {
    const sent: (Payout & { attempt_id: string })[] = await tx.all(sql`
      select ${payouts.columns}, a.id as attempt_id
      from program.payout_attempt a
      join program.payout t on t.organization_id = a.organization_id and t.id = a.payout_id
      where ${tenant(tx)} and a.file_id = ${file_id} and a.id > ${after}
      order by a.id
      limit ${most_emitted}`);
    for (const { attempt_id: _, ...payout } of sent) {
      // A payout that is sent again had failed.
      const had_failed = payout.attempt > 1 || failed_unsent.has(payout.id);
      tx.emit(event('payout.updated', payout, { previous_status: had_failed ? 'failed' : 'pending' }));
    }
    after = sent.length === most_emitted ? sent.at(-1)?.attempt_id : undefined;
    if (after !== undefined) await tx.writeEmitted();
  }
}
