/** The operations by which a program is connected to a billing processor. */
import sql from 'sql-template-tag';
import { z } from 'zod';
import { callerLine } from '../../core/access/api_key.ts';
import type { Tx } from '../../core/postgres/transaction.ts';
import { insert } from '../../core/postgres/write.ts';
import { DeletedMarker, deletedMarker } from '../../core/resource/deleted_marker.ts';
import { type Caller, idParams, type Operation, operation, type Read } from '../../core/resource/operation.ts';
import { tenant } from '../../core/resource/resource.ts';
import type { Services } from '../../core/resource/services.ts';
import { text } from '../../core/values/fields.ts';
import { newId } from '../../core/values/id.ts';
import { Problem } from '../../core/values/problem.ts';
import { validationProblem } from '../../core/values/validation.ts';
import { programs } from '../programs/program.ts';
import {
  accountOf,
  connectionOf,
  connectionsOf,
  currentConnection,
  disconnected,
  mailChange,
  mode,
  ProcessorRecord,
  processor_name,
} from './connection.ts';
import {
  type Account,
  type Connected,
  type Credentials,
  type ProcessorMode,
  type ProcessorName,
  processor_names,
} from './processor.ts';
import { billing, processorUrl, webhookUrl } from './processors.ts';

export const path = '/v1/programs/{id}/processors/{processor}';
export const processorParams = z.strictObject({ id: idParams.shape.id, processor: processor_name });

/** Less than a request waits for its answer. */
const check_ms = 8_000;

const credentials_doc = processor_names
  .map((name) => {
    const fields = Object.entries(billing[name].credentials.shape).map(
      ([field, schema]) => `\`${field}\`: ${(schema as z.ZodType).description}`,
    );
    return `- \`${name}\`: ${fields.join(' ')}`;
  })
  .join('\n');

export const processorOperations: Operation[] = [
  operation({
    name: 'processors.list',
    title: 'List the processors of a program',
    method: 'GET',
    path: '/v1/programs/{id}/processors',
    scope: 'programs:read',
    summary: 'Lists the billing processors that a program is connected to.',
    doc: 'There are three at most, so the list has one page.',
    params: idParams,
    reply: z.object({
      data: z.array(ProcessorRecord).describe('The connections, by their names.'),
      has_more: z.literal(false).describe('Always false.'),
      total_count: z.int().describe('How many processors the program is connected to.'),
    }),
    async run({ tx, params, services }) {
      await programs.get(tx, params.id);
      const data = await connectionsOf(tx, params.id, services.base_url);
      return { data, has_more: false as const, total_count: data.length };
    },
  }),
  operation({
    name: 'processors.get',
    title: 'Retrieve a processor',
    method: 'GET',
    path,
    scope: 'programs:read',
    summary: 'Retrieves the connection to a billing processor, without the credentials.',
    params: processorParams,
    reply: ProcessorRecord,
    async run({ tx, params, services }) {
      await programs.get(tx, params.id);
      return connectionOf(tx, params.id, params.processor, services);
    },
  }),
  operation({
    name: 'processors.put',
    title: 'Connect a processor',
    method: 'PUT',
    path,
    scope: 'programs:write',
    summary: 'Connects a program to a billing processor, so that its payments become sales.',
    doc: `The credentials are tried at the processor, encrypted and never returned. Those that it refuses are not kept: 400 \`invalid_parameter\`, and \`param\` names the field, as in \`credentials.secret_key\`. If it does not answer, the response is 503 and nothing is kept. At Stripe, the webhook endpoint is created, with exactly the events that have an effect. The \`processor\` of the program becomes this one, and the owner of the organization is emailed.

Put the id of the click into the checkout, so that a payment is credited to a partner: at Stripe as \`client_reference_id\` of a Checkout Session, or as \`metadata.rail_click\` of the session, the customer, the subscription or the invoice. A payment without a partner is kept in the inbox (\`GET /v1/processor_events\`) and becomes no sale. The product of a charge for several is that of its largest line, and \`metadata.products\` of the sale lists them: rules match the one product.

The fields of \`credentials\`, by processor:

${credentials_doc}`,
    params: processorParams,
    body: z.strictObject({
      mode,
      credentials: z.record(text, text).meta({
        description: 'The fields depend on the processor, as described above.',
        examples: [{ secret_key: 'rk_test_51SampleSampleSample' }],
      }),
    }),
    reply: ProcessorRecord,
    ask: ({ params: { id, processor }, body, services, read }): Promise<Connected> =>
      connect({ program_id: id, processor, ...body }, { services, read }),
    run: ({ tx, params: { id: program_id, processor }, body, asked, caller, services }) =>
      keep(tx, { program_id, processor, mode: body.mode, connected: asked }, { caller, services }),
  }),
  operation({
    name: 'processors.delete',
    title: 'Disconnect a processor',
    method: 'DELETE',
    path,
    scope: 'programs:write',
    summary: 'Disconnects a program from a billing processor.',
    doc: 'Its webhooks are no longer taken, and the webhook endpoint that was created at the processor is deleted there. What it sent before stays in the inbox, and sales stay. If it is the `processor` of the program, another one that is connected becomes that. The owner of the organization is emailed.',
    params: processorParams,
    reply: DeletedMarker,
    async run({ tx, params: { id: program_id, processor }, caller, services }) {
      const program = await programs.get(tx, program_id, { lock: true });
      const before = await connectionOf(tx, program_id, processor, services);
      await endCurrent(tx, program_id, processor);
      const [left] = await connectionsOf(tx, program_id, services.base_url);
      if (program.processor === processor)
        await programs.update(tx, program_id, { processor: left?.processor ?? null });
      tidyLater(tx, before.id);
      mailChange(tx, program, 'deleted', before, await callerLine(tx, caller));
      return deletedMarker('processor', before.id);
    },
  }),
  operation({
    name: 'processors.test',
    title: 'Test a processor',
    method: 'POST',
    path: `${path}/test`,
    scope: 'programs:write',
    summary: 'Tries the stored credentials at the processor, and looks whether it can send its events.',
    doc: 'If the processor refuses the key, the connection is `disconnected` in the response, and the owner of the organization is emailed.',
    params: processorParams,
    reply: ProcessorRecord,
    async ask({ params: { id, processor }, services, read }): Promise<Tried> {
      const connection = await read(async (tx) => {
        await programs.get(tx, id);
        await connectionOf(tx, id, processor, services);
        return currentConnection(tx, id, processor);
      });
      if (!connection) return {};
      const { endpoint_id } = connection;
      const account = accountOf(services, connection, AbortSignal.timeout(check_ms));
      return billing[processor].check(account, endpoint_id).then(
        (checked) => ({ connection_id: connection.id, checked }),
        (error: unknown) => {
          if (!(error instanceof Problem) || error.code === 'service_unavailable') throw busy(error);
          return { connection_id: connection.id, refusal: error.message };
        },
      );
    },
    async run({ tx, params: { id, processor }, asked, services }) {
      const { connection_id, checked, refusal } = asked;
      if (connection_id && refusal !== undefined) await disconnected(tx, connection_id, refusal);
      if (connection_id && checked)
        await tx.all(sql`
          update program.processor t
          set status = 'connected', disconnected_reason = null, account = ${checked.account}, warnings = ${checked.warnings},
            updated_at = ${tx.now}::timestamptz
          where ${tenant(tx)} and t.id = ${connection_id} and t.deleted_at is null`);
      return connectionOf(tx, id, processor, services);
    },
  }),
];

interface Tried {
  connection_id?: string;
  checked?: { account: string; warnings: string[] };
  refusal?: string;
}

interface Wanted {
  program_id: string;
  processor: ProcessorName;
  mode: ProcessorMode;
  credentials: Record<string, string>;
}

/** Tries the credentials, and has the processor send its events here. @throws Problem for `credentials.<field>`; service_unavailable */
async function connect(
  { program_id, processor, mode, credentials }: Wanted,
  { services, read }: { services: Services; read: Read },
): Promise<Connected> {
  const parsed = parseCredentials(processor, credentials);
  await read((tx) => programs.get(tx, program_id));
  const client = billing[processor];
  const url = processorUrl(processor, mode, services);
  const account: Account = { mode, credentials: parsed, url, cut_off: AbortSignal.timeout(check_ms) };
  try {
    const checked = await client.check(account, null);
    return { ...checked, ...(await client.connect(account, webhookUrl(processor, program_id, services))) };
  } catch (error) {
    throw error instanceof Problem ? refusalOf(error) : error;
  }
}

function parseCredentials(processor: ProcessorName, credentials: Record<string, string>): Credentials {
  const { data, error } = billing[processor].credentials.safeParse(credentials);
  if (data) return data as Credentials;
  const issues = error.issues.map((issue) => ({ ...issue, path: ['credentials', ...issue.path] }));
  throw validationProblem({ issues }, 'body', { credentials });
}

/** A processor names its own field, and does not know where that stands in a request. */
function refusalOf(problem: Problem): Problem {
  if (problem.code === 'service_unavailable') return busy(problem) as Problem;
  const { code, message, details } = problem;
  return new Problem(code, message, details.param === undefined ? {} : { param: `credentials.${details.param}` });
}

const busy = (error: unknown): unknown =>
  error instanceof Problem ? new Problem(error.code, error.message, { headers: { 'Retry-After': '5' } }) : error;

interface Kept {
  program_id: string;
  processor: ProcessorName;
  mode: ProcessorMode;
  connected: Connected;
}

async function keep(
  tx: Tx,
  { program_id, processor, mode, connected }: Kept,
  { caller, services }: { caller: Caller; services: Services },
): Promise<ProcessorRecord> {
  const program = await programs.get(tx, program_id, { lock: true });
  const before = await endCurrent(tx, program_id, processor);
  const { credentials, account, warnings, endpoint_id } = connected;
  const id = newId('prc');
  await insert(tx, 'program.processor', {
    ...{ id, program_id, processor, mode, status: 'connected', account, warnings, endpoint_id },
    hint: (credentials[billing[processor].identifying] as string).slice(-4),
    credentials: services.vault.encrypt(JSON.stringify(credentials), id),
    ...{ reconciled_to: before?.reconciled_to ?? tx.now, created_at: tx.now, updated_at: tx.now },
    backfill: before?.backfill ? JSON.stringify(before.backfill) : null,
  });
  if (program.processor !== processor) await programs.update(tx, program_id, { processor });
  tidyLater(tx, id);
  const record = await connectionOf(tx, program_id, processor, services);
  mailChange(tx, program, before ? 'changed' : 'made', record, await callerLine(tx, caller));
  return record;
}

const endCurrent = (tx: Tx, program_id: string, processor: ProcessorName) =>
  tx.maybe<{ reconciled_to: string; backfill: object | null }>(sql`
    update program.processor t
    set deleted_at = ${tx.now}::timestamptz, updated_at = ${tx.now}::timestamptz
    where ${tenant(tx)} and t.program_id = ${program_id} and t.processor = ${processor} and t.deleted_at is null
    returning t.reconciled_to, t.backfill`);

/** Deletes webhook endpoints at the processor that are of no connection any more, and works on what came while the key was refused. */
const tidyLater = (tx: Tx, id: string): void =>
  tx.enqueue('program/tidy_processor', { organization_id: tx.organization_id, id });
