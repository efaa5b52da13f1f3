/** The steps of a transfer at Wise: quote, transfer, funding; and what is known of it afterwards. */
import { createHash } from 'node:crypto';
import { decimalOf, minorOf } from './amount.ts';
import { at, listAt, quoted, textAt } from './answer.ts';
import { type Answer, asksAgain, doubtful, later, unknown } from './provider_call.ts';
import type { Credentials, PayoutErrorCode, RailOutcome, Transfer, TransferContext } from './rail.ts';
import { callWise, errorCodeOf, idOf, messageOf, title, wantsSecondFactor } from './wise_call.ts';

/** The name space of `customerTransactionId`: it never changes, since the ids of all transfers follow from it. */
const name_space = '6f1d2b0e-6a0f-4f5b-9c57-0a4f6d1f7c3e';
/** A call that was not answered may still be at work for this long: until then, a list without the transfer proves nothing. */
const settling_ms = 10 * 60_000;
const page_size = 100;
const most_pages = 50;
const day_ms = 86_400_000;
const by_hand = 'Wise wants a second factor for the funding: fund the transfer at wise.com within 14 days.';

/** A step answers with an outcome, which ends the attempt's run, or with what is known from then on. */
type Step = { outcome: RailOutcome } | { context: TransferContext };
const end = (outcome: RailOutcome) => ({ outcome });

export async function submit(
  transfer: Transfer,
  credentials: Credentials,
  given: TransferContext,
): Promise<RailOutcome> {
  let context = given;
  for (const step of [findLost, makeQuote, makeTransfer]) {
    const done: Step = await step(transfer, credentials, context);
    if ('outcome' in done) return done.outcome;
    context = done.context;
  }
  return fund(transfer, credentials, context);
}

async function keep(context: TransferContext, more: Record<string, string>): Promise<TransferContext> {
  const state = { ...context.state, ...more };
  await context.keep(state);
  return { ...context, state };
}

/** An earlier call may have made the transfer without returning its id. Before that is settled, repeating the call finds out. */
async function findLost(transfer: Transfer, credentials: Credentials, context: TransferContext): Promise<Step> {
  if (context.state.transfer_id !== undefined || context.last_sent_at === null) return { context };
  const found = await searchTransfer(transfer, credentials, context);
  if (found === undefined) return { context };
  if ('transfer_id' in found) return { context: await keep(context, found) };
  return found.outcome.status === 'unknown' ? { context } : found;
}

/** A quote moves no money, and is good for one transfer and 30 minutes. */
async function makeQuote(transfer: Transfer, credentials: Credentials, context: TransferContext): Promise<Step> {
  const { quote_id, quote_until, transfer_id } = context.state;
  if (transfer_id !== undefined) return { context };
  if (quote_id !== undefined && Date.parse(quote_until ?? '') > context.now.getTime()) return { context };
  const path = `/v3/profiles/${credentials.profile_id}/quotes`;
  const result = await callWise(
    { method: 'POST', path, body: quoteRequest(transfer, credentials) },
    credentials,
    context,
  );
  if (result.kind !== 'answered' || result.status === 429 || result.status === 408 || result.status >= 500) {
    return end(asksAgain(title, result, context.now));
  }
  const id = textAt(result.body, 'id');
  if (result.status >= 300) return end(await refused(result, transfer, credentials, context));
  if (id === undefined) return end(later('Wise answered without a quote.'));
  const expires = textAt(result.body, 'expirationTime') ?? new Date(context.now.getTime() + 25 * 60_000).toISOString();
  const fee = feeOf(result.body, transfer);
  return {
    context: await keep(context, {
      quote_id: id,
      quote_until: expires,
      ...(fee === null ? {} : { fee_minor: String(fee) }),
    }),
  };
}

/** The amount is written into the JSON digit by digit: it is a number there. */
const quoteRequest = ({ amount_minor, currency, destination }: Transfer, { source_currency }: Credentials): string =>
  `{"sourceCurrency":${JSON.stringify(source_currency ?? currency)},"targetCurrency":${JSON.stringify(currency)},` +
  `"targetAmount":${decimalOf(amount_minor, currency)},"targetAccount":${accountOf(destination)},"preferredPayIn":"BALANCE"}`;

/** A recipient's id is a number at Wise; any other text is refused there. */
const accountOf = ({ account_id = '' }: Transfer['destination']): string =>
  /^[1-9][0-9]{0,15}$/.test(account_id) ? account_id : JSON.stringify(account_id);

function feeOf(quote: unknown, { currency }: Transfer): number | null {
  if (textAt(quote, 'sourceCurrency') !== currency) return null;
  const option = listAt(quote, 'paymentOptions').find(
    (each) => textAt(each, 'payIn') === 'BALANCE' && textAt(each, 'payOut') === textAt(quote, 'payOut'),
  );
  const fee = at(option, 'fee', 'total');
  return typeof fee === 'number' ? minorOf(String(fee), currency) : null;
}

/** "Retry the call using the same value in the customerTransactionId": the first transfer is answered again. */
async function makeTransfer(transfer: Transfer, credentials: Credentials, context: TransferContext): Promise<Step> {
  if (context.state.transfer_id !== undefined) return { context };
  const body =
    `{"targetAccount":${accountOf(transfer.destination)},"quoteUuid":${JSON.stringify(context.state.quote_id)},` +
    `"customerTransactionId":"${transactionIdOf(transfer)}","details":${JSON.stringify({ reference: referenceOf(transfer) })}}`;
  const result = await callWise({ method: 'POST', path: '/v1/transfers', body }, credentials, context);
  const doubt = doubtful(title, result, context.now);
  if (doubt) return end(doubt);
  const answer = result as Answer;
  if (answer.status >= 300) return end(await refused(answer, transfer, credentials, context));
  const transfer_id = idOf(answer.body);
  if (transfer_id === undefined) return end(unknown('Wise answered without a transfer.'));
  if (textAt(answer.body, 'customerTransactionId') !== transactionIdOf(transfer)) {
    return end(unknown('Wise answered with another transfer.'));
  }
  return { context: await keep(context, { transfer_id }) };
}

/** On the partner's bank statement, where banks allow few characters. */
const referenceOf = ({ idempotency_key }: Transfer): string =>
  idempotency_key.replaceAll(/[^A-Za-z0-9]/g, '').slice(-10);

/** UUID version 5 (RFC 9562) of the key. */
export function transactionIdOf({ idempotency_key }: Pick<Transfer, 'idempotency_key'>): string {
  const hash = createHash('sha1')
    .update(Buffer.from(name_space.replaceAll('-', ''), 'hex'))
    .update(idempotency_key);
  const bytes = hash.digest().subarray(0, 16);
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x50, 6);
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8);
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}

/** A refusal before there is a transfer is definite, unless an earlier call may have made one that was not found yet. */
async function refused(
  answer: Answer,
  transfer: Transfer,
  credentials: Credentials,
  context: TransferContext,
): Promise<RailOutcome> {
  const error_message = messageOf(answer, credentials);
  if (context.last_sent_at !== null && !isSettled(context))
    return unknown(`Wise refused the repetition: ${error_message}`);
  if (context.last_sent_at !== null) {
    const found = await searchTransfer(transfer, credentials, context);
    if (found !== undefined) return later(`Wise refused the repetition: ${error_message}`);
  }
  return { status: 'failed', reference: null, error_code: errorCodeOf(answer.body), error_message };
}

const isSettled = ({ now, last_sent_at }: TransferContext): boolean =>
  last_sent_at === null || now.getTime() - Date.parse(last_sent_at) > settling_ms;

/** Pays. A transfer is funded once at most: "you can't fund a transfer twice". */
async function fund(transfer: Transfer, credentials: Credentials, context: TransferContext): Promise<RailOutcome> {
  const { transfer_id, is_funded, error_code } = context.state;
  if (is_funded !== undefined) return readTransfer(transfer, credentials, context);
  if (error_code !== undefined) return giveUp(transfer, credentials, context);
  if (context.last_sent_at !== null) {
    const found = await readTransfer(transfer, credentials, context);
    if (found.status !== 'later' || !isUnfunded(found)) return found;
  }
  const path = `/v3/profiles/${credentials.profile_id}/transfers/${transfer_id}/payments`;
  const result = await callWise({ method: 'POST', path, body: '{"type":"BALANCE"}' }, credentials, context);
  const doubt = doubtful(title, result, context.now);
  if (doubt) return doubt;
  return afterFunding(result as Answer, transfer, credentials, context);
}

/** "A successful HTTP response does not always mean that Wise funded the transfer." */
async function afterFunding(
  answer: Answer,
  transfer: Transfer,
  credentials: Credentials,
  context: TransferContext,
): Promise<RailOutcome> {
  const reference = context.state.transfer_id ?? null;
  if (answer.status < 300 && textAt(answer.body, 'status') === 'COMPLETED') {
    await keep(context, { is_funded: 'by_rail' });
    return { status: 'processing', reference };
  }
  if (wantsSecondFactor(answer)) {
    await keep(context, { is_funded: 'by_hand' });
    return { status: 'processing', reference, note: by_hand };
  }
  if (answer.status === 401 || answer.status === 403)
    return later(`Wise refuses the token: ${messageOf(answer, credentials)}`);
  const is_rejected = answer.status < 300 ? textAt(answer.body, 'status') === 'REJECTED' : isRefusalOf(answer.body);
  if (!is_rejected) return readTransfer(transfer, credentials, context);
  const fault = { error_code: errorCodeOf(answer.body), error_message: messageOf(answer, credentials) };
  return giveUp(transfer, credentials, await keep(context, fault));
}

/** The codes that say that this funding was not made, unlike `transfer.invalid-state`, which says that the transfer is past it. */
const isRefusalOf = (body: unknown): boolean => errorCodeOf(body) === 'insufficient_funds';

/** An unfunded transfer could still be funded by a person: it is cancelled before the payout counts as failed. */
async function giveUp(transfer: Transfer, credentials: Credentials, context: TransferContext): Promise<RailOutcome> {
  const path = `/v1/transfers/${context.state.transfer_id}/cancel`;
  const result = await callWise({ method: 'PUT', path }, credentials, context);
  if (result.kind !== 'answered') return asksAgain(title, result, context.now);
  return readTransfer(transfer, credentials, context);
}

export async function lookUp(
  transfer: Transfer,
  credentials: Credentials,
  context: TransferContext,
): Promise<RailOutcome | undefined> {
  const located = await locate(transfer, credentials, context);
  if (located === undefined || 'outcome' in located) return located?.outcome;
  return readTransfer(transfer, credentials, located.context);
}

export async function cancel(
  transfer: Transfer,
  credentials: Credentials,
  context: TransferContext,
): Promise<RailOutcome | undefined> {
  const located = await locate(transfer, credentials, context);
  if (located === undefined || 'outcome' in located) return located?.outcome;
  const found = await readTransfer(transfer, credentials, located.context);
  return found.status === 'processing' || isUnfunded(found) ? giveUp(transfer, credentials, located.context) : found;
}

async function locate(
  transfer: Transfer,
  credentials: Credentials,
  context: TransferContext,
): Promise<Step | undefined> {
  if (context.state.transfer_id !== undefined) return { context };
  if (context.last_sent_at === null) return undefined;
  const found = await searchTransfer(transfer, credentials, context);
  return found !== undefined && 'transfer_id' in found ? { context: await keep(context, found) } : found;
}

async function readTransfer(
  transfer: Transfer,
  credentials: Credentials,
  context: TransferContext,
): Promise<RailOutcome> {
  const path = `/v1/transfers/${context.state.transfer_id}`;
  const result = await callWise({ method: 'GET', path }, credentials, context);
  if (result.kind !== 'answered' || result.status !== 200 || idOf(result.body) !== context.state.transfer_id) {
    return asksAgain(title, result, context.now);
  }
  if (textAt(result.body, 'customerTransactionId') !== transactionIdOf(transfer)) {
    return unknown('Wise showed the transfer of another payout.');
  }
  return outcomeOf(result.body, context);
}

/** The transfer of this attempt among those that were made since it began. Undefined: there is none, and no call is under way. */
async function searchTransfer(
  transfer: Transfer,
  credentials: Credentials,
  context: TransferContext,
): Promise<{ transfer_id: string } | { outcome: RailOutcome } | undefined> {
  const wanted = transactionIdOf(transfer);
  for (let page = 0; page < most_pages; page += 1) {
    const query = {
      profile: credentials.profile_id as string,
      createdDateStart: new Date(Date.parse(transfer.began_at) - day_ms).toISOString(),
      targetCurrency: transfer.currency,
      limit: String(page_size),
      offset: String(page * page_size),
    };
    const result = await callWise({ method: 'GET', path: '/v1/transfers', query }, credentials, context);
    if (result.kind !== 'answered' || result.status !== 200 || !Array.isArray(result.body)) {
      return { outcome: asksAgain(title, result, context.now) };
    }
    const transfer_id = idOf(listAt(result.body).find((each) => textAt(each, 'customerTransactionId') === wanted));
    if (transfer_id !== undefined) return { transfer_id };
    if (result.body.length < page_size) {
      return isSettled(context) ? undefined : { outcome: unknown('Wise has no such transfer yet.') };
    }
  }
  return { outcome: unknown('Wise lists more transfers than Rail reads.') };
}

const unfunded = 'The transfer is not funded yet.';
const isUnfunded = (outcome: RailOutcome): boolean => outcome.status === 'later' && outcome.reason === unfunded;

/** https://docs.wise.com/guides/product/send-money/tracking/transfer-statuses */
function outcomeOf(found: unknown, { state, now }: TransferContext): RailOutcome {
  const reference = idOf(found) ?? null;
  const failed = (error_code: PayoutErrorCode, error_message: string): RailOutcome => ({
    status: 'failed',
    reference,
    error_code: (state.error_code as PayoutErrorCode | undefined) ?? error_code,
    error_message: state.error_message ?? error_message,
  });
  const returned = (error_message: string): RailOutcome => ({
    status: 'returned',
    reference,
    error_code: 'returned',
    error_message,
  });
  switch (textAt(found, 'status')) {
    case 'outgoing_payment_sent':
      return { status: 'paid', reference, paid_at: now.toISOString(), fee_minor: feeIn(state) };
    case 'incoming_payment_waiting':
      if (state.is_funded === undefined) return later(unfunded);
      return { status: 'processing', reference, ...(state.is_funded === 'by_hand' ? { note: by_hand } : {}) };
    case 'cancelled':
      return failed('provider_rejected', 'The transfer was cancelled.');
    case 'funds_refunded':
      return returned('Wise refunded the transfer.');
    case 'charged_back':
      return returned('The transfer was charged back.');
    case 'bounced_back':
      return { status: 'processing', reference, note: "The recipient's bank sent it back to Wise." };
    default:
      return { status: 'processing', reference, ...noteOf(found) };
  }
}

const feeIn = ({ fee_minor }: TransferContext['state']): number | null =>
  fee_minor === undefined ? null : Number(fee_minor);

/** Two states wait for a person. */
function noteOf(found: unknown): { note?: string } {
  const status = textAt(found, 'status') ?? '';
  return /waiting|hold/.test(status) ? { note: `Wise waits: ${quoted(status.replaceAll('_', ' '), [])}.` } : {};
}
