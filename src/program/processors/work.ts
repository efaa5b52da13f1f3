/** Works on the events of the inbox: asks the processor what an event does not hold, and applies what it says in one transaction. */
import sql from 'sql-template-tag';
import type { TaskContext } from '../../core/jobs/worker_context.ts';
import { parsedJson } from '../../core/net/answer.ts';
import { type Tx, transaction } from '../../core/postgres/transaction.ts';
import { update } from '../../core/postgres/write.ts';
import { tenant } from '../../core/resource/resource.ts';
import { Problem } from '../../core/values/problem.ts';
import { storableValue } from '../../core/values/texts/stored_text.ts';
import { programs } from '../programs/program.ts';
import { applyFacts, haveSales, idsIn, mayBeCredited } from './apply.ts';
import { accountOf, type Connection, currentConnection, whileKeyHolds } from './connection.ts';
import { type Applying, ignored, knowNothing, lockIds, type Outcome, unattributed } from './known.ts';
import {
  type Attributable,
  type Fact,
  type Nothing,
  type Processor,
  type ProcessorName,
  type Question,
  type Reading,
  Unreadable,
} from './processor.ts';
import { billing } from './processors.ts';

interface Queue {
  organization_id: string;
  program_id: string;
  queue: string;
}

type Context = Pick<TaskContext, 'store' | 'services' | 'cut_off' | 'stopping'>;

interface Pending {
  id: string;
  processor: ProcessorName;
  run_id: string;
  livemode: boolean;
  occurred_at: string;
  body: string | null;
}

/** The questions that one event leads to. */
const most_steps = 4;

/** Works on events that are pending, in the order in which they happened, until none is left. */
export async function workQueue(queue: Queue, context: Context): Promise<void> {
  while (!context.stopping.aborted) {
    const next = await readNext(queue, context);
    if (!next || !(await workEvent(queue, next, context))) return;
  }
  throw new Error('The worker stops: another one goes on with these events.');
}

interface Next {
  event: Pending;
  connection: Connection;
}

/** Undefined: nothing is pending, or nobody may ask the processor. */
const readNext = ({ organization_id, program_id, queue }: Queue, { store }: Context): Promise<Next | undefined> =>
  transaction(store, { organization_id, request_id: null, only_reads: true }, async (tx) => {
    const event = await tx.maybe<Pending>(sql`
      select t.id, t.processor, t.run_id, t.livemode, t.occurred_at, t.body
      from program.processor_event t
      where ${tenant(tx)} and t.program_id = ${program_id} and t.queue = ${queue} and t.status = 'pending'
      order by t.occurred_at, t.rank, t.external_event_id
      limit 1`);
    const connection = event && (await currentConnection(tx, program_id, event.processor));
    return event && connection?.status === 'connected' ? { event, connection } : undefined;
  });

/** @returns false where the processor refuses the key: the events wait for another one */
function workEvent(queue: Queue, { event, connection }: Next, context: Context): Promise<boolean> {
  const body = storableValue(parsedJson(event.body ?? ''));
  const is_of_mode = event.livemode === (connection.mode === 'live');
  const opening = { organization_id: queue.organization_id, request_id: event.run_id };
  return whileKeyHolds(context.store, opening, connection.id, async () => {
    const applyAs = (read: Read) =>
      transaction(context.store, opening, (tx) => apply(tx, queue, { event, connection, read }, context));
    const work = async () => applyAs(is_of_mode ? await readFacts(queue, { body, connection }, context) : other_mode);
    await work().catch((error: unknown) => applyAs(unstorable(error)));
  });
}

const other_mode: Nothing = {
  kind: 'nothing',
  reason: 'other_mode',
  message: 'It came while the program was connected in the other mode, test or live.',
};
const erased: Nothing = { kind: 'nothing', reason: 'erased', message: 'It was erased together with its customer.' };

/** A value that cannot be stored would be refused each time, and what comes after it would wait for ever. @throws any other error */
function unstorable(error: unknown): Nothing {
  if (error instanceof Problem && error.code === 'invalid_parameter') return unreadable(error.message);
  throw error;
}

const unreadable = (message: string): Nothing => ({ kind: 'nothing', reason: 'unreadable', message });

type Read = Fact[] | Nothing | { nobody: Attributable };

/** Reads an event, and asks for what it lacks where somebody might be credited with it. */
async function readFacts(
  { organization_id, program_id }: Queue,
  { body, connection }: { body: unknown; connection: Connection },
  { store, services, cut_off }: Context,
): Promise<Read> {
  const processor = billing[connection.processor];
  if (body === undefined) return erased;
  const answers: unknown[] = [];
  const ask = async (question: Question) =>
    storableValue(await processor.ask(accountOf(services, connection, cut_off), question));
  for (let step = 0; step < most_steps; step++) {
    const reading = readOnce(processor, body, answers);
    if (!('ask' in reading)) return reading;
    const { worth_it_for, where_sales_are } = reading;
    const opening = { organization_id, request_id: null, only_reads: true };
    if (worth_it_for && !(await transaction(store, opening, (tx) => mayBeCredited(tx, program_id, worth_it_for))))
      return { nobody: worth_it_for };
    const is_needed =
      !where_sales_are || (await transaction(store, opening, (tx) => haveSales(tx, program_id, where_sales_are)));
    answers.push(...(await Promise.all(reading.ask.map((question) => (is_needed ? ask(question) : undefined)))));
  }
  throw new Error('An event leads to one question after another.');
}

function readOnce(processor: Processor, body: unknown, answers: unknown[]): Reading {
  try {
    return processor.read(body, answers);
  } catch (error) {
    if (!(error instanceof Unreadable)) throw error;
    return unreadable(error.message);
  }
}

const not_credited =
  'Nobody is credited with this customer, so the charge is no sale. It becomes one once the customer is known.';

async function apply(
  tx: Tx,
  { program_id }: Queue,
  { event, connection, read }: Next & { read: Read },
  { services }: Context,
): Promise<void> {
  const facts = Array.isArray(read) ? read : [];
  await lockIds(tx, program_id, [...idsIn(facts), ...('nobody' in read ? idsOf(read.nobody) : [])]);
  // What it names may have released an earlier event since it was read, which comes first then.
  const is_next = await tx.maybe(sql`
    select from program.processor_event t
    where ${tenant(tx)} and t.id = ${event.id} and t.status = 'pending'
      and not exists (
        select from program.processor_event e
        where e.organization_id = t.organization_id and e.program_id = t.program_id and e.queue = t.queue and e.status = 'pending'
          and (e.occurred_at, e.rank, e.external_event_id) < (t.occurred_at, t.rank, t.external_event_id)
      )
    for no key update of t`);
  if (!is_next) return;
  const program = await programs.get(tx, program_id);
  const { processor, occurred_at } = event;
  const applying = { tx, program, processor, event_id: event.id, occurred_at, by: connection.id, services };
  const outcome = Array.isArray(read)
    ? await applyFacts(applying, read)
    : 'nobody' in read
      ? await stillNobody(applying, read.nobody)
      : outcomeOf(read);
  if (outcome) await note(tx, event.id, outcome);
}

/** What cannot be read is shown among what people have to look at. */
const outcomeOf = ({ reason, message }: Nothing): Outcome =>
  reason === 'unreadable' ? { status: 'failed', reason, message } : ignored(reason, message);

const idsOf = ({ external_customer_id, payment_ids = [] }: Attributable): string[] =>
  external_customer_id === null ? payment_ids : [external_customer_id, ...payment_ids];

/** Undefined where the customer became known meanwhile: the event is worked on once more. */
async function stillNobody(applying: Applying, nobody: Attributable): Promise<Outcome | undefined> {
  const { tx, program } = applying;
  const { external_customer_id, payment_ids = [] } = nobody;
  if (await mayBeCredited(tx, program.id, { external_customer_id, by_coupon: false, payment_ids })) return undefined;
  await knowNothing(applying, payment_ids);
  return unattributed(external_customer_id, not_credited);
}

const note = (tx: Tx, id: string, { status, waiting_for, reason, message, result_id }: Outcome) =>
  update(tx, 'program.processor_event', id, {
    ...{ status, worked_at: tx.now, waiting_for: waiting_for ?? null },
    ...{ reason: reason ?? null, message: message ?? null, result_id: result_id ?? null },
  });
