/** Performs operations in the transaction of a job: the code, the checks and the events of a request, without one. */
import type { Tx } from '../postgres/transaction.ts';
import { correctDetails } from '../values/detail.ts';
import { Problem, problemThatCommits } from '../values/problem.ts';
import { validationProblem } from '../values/validation.ts';
import type { Operation } from './operation.ts';
import type { Services } from './services.ts';

interface Given {
  params?: object;
  body?: object;
}

/** As if a key with every scope had sent it. */
const everything = { mode: 'live', scopes: ['*'] } as const;

/**
 * Performs an operation that asks nobody outside.
 * @param by the id of who performs it, in place of an API key
 * @returns its reply, or the problem of a request that would be refused: what it wrote is undone then, except where the problem keeps its effects
 */
export async function perform<Reply>(
  tx: Tx,
  { operation, by, services }: { operation: Operation; by: string; services: Services },
  { params = {}, body = {} }: Given,
): Promise<Reply | Problem> {
  const sent = structuredClone(body);
  correctDetails(sent, operation.details ?? {});
  const parsed = operation.body.safeParse(sent);
  if (parsed.error) return validationProblem(parsed.error, 'body', sent);
  const given = { tx, params, body: parsed.data as unknown };
  const caller = { ...everything, scopes: [...everything.scopes], organization_id: tx.organization_id, api_key_id: by };
  try {
    return await tx.part(async () => {
      const ahead = await operation.ahead?.(given);
      const context = { ...given, caller, services, query: {}, asked: undefined, ahead };
      return (await operation.run(context).catch(problemThatCommits)) as Reply | Problem;
    });
  } catch (error) {
    if (error instanceof Problem) return error;
    throw error;
  }
}

/** An operation by its name. @throws Error where there is none */
export function operationOf(operations: Operation[], name: string): Operation {
  const found = operations.find((one) => one.name === name);
  if (!found) throw new Error(`There is no operation ${name}.`);
  return found;
}
