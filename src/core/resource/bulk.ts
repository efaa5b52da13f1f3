import { z } from 'zod';
import { hasLostRace, translateError, unstorableText } from '../postgres/errors.ts';
import { withoutAbsent } from '../values/absent.ts';
import { correctDetails, type DetailWarning, withCorrections } from '../values/detail.ts';
import { ErrorBody } from '../values/error_body.ts';
import { Problem, problemThatCommits } from '../values/problem.ts';
import { pathOfUnstorable } from '../values/texts/stored_text.ts';
import { validationProblem } from '../values/validation.ts';
import { type Context, type Operation, operation } from './operation.ts';

export const most_in_bulk = 1_000;
export const most_bulk_bytes = 4 * 1024 * 1024;
export const most_bulk_values = 100_000;

/** The body of one item of a bulk, with its place. */
export interface BulkItem<Body> {
  nth: number;
  body: Body;
}

// biome-ignore lint/suspicious/noExplicitAny: a body is what the operation takes
type AnyContext = Context<any, any, any>;

interface BulkOptions<Body> {
  summary: string;
  doc: string;
  /** `sale`: what the answer holds each result under. */
  noun: string;
  /** Writes in sets what it can; what it leaves out runs by itself, in the order of the request. @returns replies, or what is wrong, by their place */
  inSets?: (context: AnyContext, items: BulkItem<Body>[]) => Promise<Map<number, unknown>>;
}

type Outcome = { status: number } & Record<string, unknown>;

/**
 * Many of what an operation takes one of, in one request and one transaction. Each is answered in its place, as it would have been by itself; one
 * that is refused changes nothing, and spoils no other.
 */
export function bulkOf<Body>(of: Operation, { summary, doc, noun, inSets }: BulkOptions<Body>): Operation {
  return operation({
    ...{
      name: `${of.tag}.create_in_bulk`,
      method: 'POST',
      path: `${of.path}/bulk`,
      scope: of.scope,
      title: `Record many ${noun}s`,
      summary,
      bulk_of: of,
    },
    ...(of.test_keys === undefined ? {} : { test_keys: of.test_keys }),
    doc: `${doc} The body is a list of at most ${most_in_bulk.toLocaleString('en')} bodies of \`${of.method} ${of.path}\`, as JSON or as lines of \`application/x-ndjson\`. The answer is 200, with an outcome for each in its place: its \`status\`, and the ${noun} or the error that the request would have been answered by itself. One that is refused changes nothing, and does not affect the others. The whole request counts as one against the rate limit.`,
    body: z.array(of.body).min(1).max(most_in_bulk),
    errors: of.errors ?? [],
    reply: z.object({
      data: z
        .array(
          z.object({
            status: z.int().describe(`The status that the ${noun} would have been answered with by itself.`),
            [noun]: of.reply.optional().describe('What was made. Present only if it succeeded.'),
            error: ErrorBody.shape.error.optional().describe('What is wrong. Present only if it was refused.'),
            existing: ErrorBody.shape.existing,
          }),
        )
        .describe('An outcome for each of the list, in its order.'),
    }),
    async run(context) {
      const given = listOf(context.body).map((item) => read<Body>(of, item));
      const items = given.flatMap((one, nth) => (one instanceof Problem ? [] : [{ nth, body: one.body }]));
      const replies = inSets ? await unlessOneSpoilsAll(context, () => inSets(context, items)) : none;
      const data: Outcome[] = [];
      for (const [nth, one] of given.entries()) {
        if (one instanceof Problem) data.push(refusal(one));
        else if (replies.has(nth)) data.push(outcomeIn(of, noun, replies.get(nth), one.corrections));
        else data.push(await outcomeOf(context, of, noun, one));
      }
      return { data };
    },
  });
}

const none: ReadonlyMap<number, unknown> = new Map();

/**
 * Returns the results that were written in sets: nothing where one of them cannot be stored, or was written by another request meanwhile. Then each
 * runs by itself.
 */
async function unlessOneSpoilsAll(
  { tx }: AnyContext,
  write: () => Promise<ReadonlyMap<number, unknown>>,
): Promise<ReadonlyMap<number, unknown>> {
  try {
    return await tx.part(write);
  } catch (error) {
    if (hasLostRace(error) || translateError(error) instanceof Problem) return none;
    throw error;
  }
}

/** @throws Problem invalid_parameter */
function listOf(body: unknown): unknown[] {
  if (!Array.isArray(body)) throw new Problem('invalid_parameter', 'The body must be a list.');
  if (body.length === 0) throw new Problem('invalid_parameter', 'The list is empty. Send at least 1 object.');
  if (body.length <= most_in_bulk) return body;
  throw new Problem(
    'invalid_parameter',
    `The list has ${body.length.toLocaleString('en')} objects. Send at most ${most_in_bulk.toLocaleString('en')} in one request.`,
  );
}

interface Read<Body> {
  body: Body;
  corrections: DetailWarning[];
}

/** Reads an item as the single operation reads its body. */
function read<Body>({ body: schema, details }: Operation, given: unknown): Read<Body> | Problem {
  if (given instanceof Problem) return given; // a line that is no JSON
  const corrections = details ? correctDetails(given, details) : [];
  const path = pathOfUnstorable(given);
  if (path) return unstorableText(path.join('.'));
  const { error, data } = schema.safeParse(withoutAbsent(schema, given));
  return error ? validationProblem(error, 'body', given) : { body: data as Body, corrections };
}

const refusal = (problem: Problem): Outcome => ({ status: problem.status, ...problem.envelope() });

const outcomeIn = ({ status }: Operation, noun: string, result: unknown, corrections: DetailWarning[]): Outcome =>
  result instanceof Problem ? refusal(result) : { status, [noun]: withCorrections(result, corrections) };

/** One by itself. Where it lost a race, it runs again and sees what the winner wrote. */
async function outcomeOf(
  context: AnyContext,
  of: Operation,
  noun: string,
  { body, corrections }: Read<unknown>,
): Promise<Outcome> {
  const one = { ...context, body, asked: undefined };
  const run = async () => {
    const result = await of.run({ ...one, ahead: await of.ahead?.(one) }).catch(problemThatCommits);
    return outcomeIn(of, noun, result, corrections);
  };
  try {
    return await context.tx.part(run).catch((error) => {
      if (!hasLostRace(error)) throw error;
      return context.tx.part(run);
    });
  } catch (error) {
    const problem = translateError(error);
    if (problem instanceof Problem) return refusal(problem);
    throw error;
  }
}
