/** The operation that an address names, and what the address says of its input. */
import type { FastifyRequest } from 'fastify';
import type { Operation } from '../core/resource/operation.ts';
import { notFound } from '../core/values/problem.ts';
import { paramsOf } from './catalog.ts';
import { withZones } from './filters.ts';
import { queryOf } from './list_page.ts';
import type { DashboardVisit } from './visit.ts';

/** @throws Problem resource_not_found where no operation has the name */
export function operationOf({ catalog }: DashboardVisit, name: string, is_read: boolean): Operation {
  const found = catalog.operations.get(name);
  if (!found || (found.method === 'GET') !== is_read) throw notFound('page', name);
  return found;
}

/** The query of a page's address: the parameters of the operation's path, and the others. */
export function inputOf(
  operation: Operation,
  request: FastifyRequest,
): { params: Record<string, string>; query: Record<string, string> } {
  const names = paramsOf(operation);
  const all = Object.entries(queryOf(request.query));
  return {
    params: Object.fromEntries(all.filter(([name]) => names.includes(name))),
    query: withZones(operation, Object.fromEntries(all.filter(([name]) => !names.includes(name)))),
  };
}
