import { logChange } from '../../core/access/audit_log.ts';
import { type Store, type Tx, transaction } from '../../core/postgres/transaction.ts';
import { type Caller, isLogged, type Operation } from '../../core/resource/operation.ts';
import { readTimeZones } from '../../core/resource/time_zones.ts';
import { Problem, problemThatCommits } from '../../core/values/problem.ts';
import { validationProblem } from '../../core/values/validation.ts';
import { requireSomeKey } from '../../encryption_key.ts';
import { openServices } from '../../service.ts';
import { type Opened, UsageError } from '../command.ts';
import { asDemo } from '../demo.ts';

/**
 * Calls an operation of the API in an organization, as by a key without a user: checks outside come first, then one transaction.
 * @throws UsageError for a body that the API would refuse, Problem
 */
export async function callOperation<Reply>(
  { store: given, config, log }: Opened,
  organization_id: string,
  operation: Operation,
  { params = {}, body: sent = {} }: { params?: Record<string, string>; body?: object },
): Promise<Reply> {
  requireSomeKey(config);
  const services = await asDemo(config, await openServices(config, log, given.database));
  const { writeEvents } = await import('../../products.ts');
  const store: Store = { ...given, writeEvents };
  await readTimeZones(store.database);
  const body = operation.body.safeParse(sent);
  if (!body.success) throw new UsageError(validationProblem(body.error, 'body', sent).message);
  const request = { caller: callerOf(organization_id), params, body: body.data, services };
  const tenant = { organization_id, request_id: null };
  const asked = await operation.ask?.({ ...request, read: (work) => transaction(store, tenant, work) });
  const { ahead: read } = operation;
  const ahead = read && ((tx: Tx) => read({ ...request, tx }));
  const result = await transaction(store, { ...tenant, ahead }, async (tx) => {
    const reply = await operation
      .run({ ...request, tx, query: {}, asked, ahead: await tx.ahead })
      .catch(problemThatCommits);
    if (!(reply instanceof Problem) && isLogged(operation, body.data))
      logChange(tx, operation.name, { ...request, reply });
    return reply;
  });
  if (result instanceof Problem) throw result;
  return result as Reply;
}

const callerOf = (organization_id: string): Caller => ({
  ...{ organization_id, api_key_id: '', mode: 'live', scopes: [] },
});
