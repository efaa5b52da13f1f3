/** Somebody of the merchant's team who asks for a page: their session, the program that they look at, and how they read. */
import type { FastifyRequest } from 'fastify';
import type { Session } from '../core/access/session.ts';
import type { Role } from '../core/access/user.ts';
import type { Tx } from '../core/postgres/transaction.ts';
import type { Reader } from '../pages/format.ts';
import { read, type Use, type Visit } from '../pages/run.ts';
import type { Program } from '../program/programs/program.ts';
import type { Catalog } from './catalog.ts';
import { scopesOf } from './roles.ts';

export interface DashboardVisit extends Visit {
  session: Session;
  role: Role;
  catalog: Catalog;
  reader: Reader;
  /** The currencies of the programs, by their ids, once the page has read them. */
  currencies: Map<string, string>;
  /** The records that the page names others by, as far as it has read them. */
  known: Map<string, Record<string, unknown> | undefined>;
}

/** The program that a page is about, and those to choose from. */
export interface Chosen {
  program_id: string | undefined;
  programs: Pick<Program, 'id' | 'name' | 'currency' | 'timezone'>[];
}

/** Makes the visit of a request. @throws SignInFirst */
export type Visiting = (request: FastifyRequest) => DashboardVisit;

type Serving = Pick<DashboardVisit, 'store' | 'services' | 'catalog'>;

export function visitOf(request: FastifyRequest, session: Session, serving: Serving): DashboardVisit {
  const role = session.role ?? 'viewer';
  const { organization_id, id } = session;
  const user_id = session.user_id as string;
  return {
    ...serving,
    ...{ request, session, role, operations: serving.catalog.operations },
    caller: { organization_id, api_key_id: id, user_id, mode: 'live', scopes: scopesOf(role) },
    reader: { language: languageOf(request), time_zone: 'UTC' },
    currencies: new Map(),
    known: new Map(),
  };
}

/** English, written as the browser's region writes numbers and times. */
function languageOf({ headers: { 'accept-language': accepted = '' } }: FastifyRequest): string {
  const english = accepted.split(',').find((one) => /^en(?:-[A-Za-z]{2})?(?:;|$)/.test(one.trim()));
  return english?.trim().split(';', 1)[0] ?? 'en';
}

/** The cookie that remembers the program; it is nobody's secret. */
export const program_cookie = 'rail-program';

/** Reads a page's data, with the program that was chosen, else the first, in whose zone the page shows times. */
export const readPage = <Result>(
  visit: DashboardVisit,
  work: (use: Use, chosen: Chosen, tx: Tx) => Promise<Result>,
): Promise<Result & { chosen: Chosen }> =>
  read(visit, async (use, tx) => {
    const { data } = await use('programs.list', { query: { limit: 100 } });
    const programs = data as Program[];
    for (const program of programs) {
      visit.currencies.set(program.id, program.currency);
      visit.known.set(program.id, program);
    }
    const wanted = wantedProgram(visit.request);
    const program = programs.find(({ id }) => id === wanted) ?? programs.at(-1);
    const chosen = { programs, program_id: program?.id };
    visit.reader.time_zone = program?.timezone ?? 'UTC';
    return { ...(await work(use, chosen, tx)), chosen };
  });

function wantedProgram({ headers: { cookie = '' }, query }: FastifyRequest): string | undefined {
  const { program_id } = query as { program_id?: unknown };
  if (typeof program_id === 'string') return program_id;
  const prefix = `${program_cookie}=`;
  return cookie
    .split('; ')
    .find((one) => one.startsWith(prefix))
    ?.slice(prefix.length);
}
