import sql from 'sql-template-tag';
import type { Config } from '../../config.ts';
import { type Database, run } from '../../core/postgres/database.ts';
import { program } from '../../program/index.ts';
import { recruitment } from '../../recruitment/index.ts';
import type { EventPolicy } from '../../webhooks/events/policy.ts';
import { readDemo } from '../demo.ts';

/** What is listened to: a program, or the recruitment service of an organization. */
export interface Listened {
  id: string;
  organization_id: string;
  name: string;
  policy: EventPolicy;
}

/** The one that was asked for, else the demo's, else the only one. */
export async function chooseProgram(database: Database, config: Config, asked: string | undefined): Promise<Listened> {
  const programs = await run<Choice>(database, sql`select id, organization_id, name from program.program order by id`);
  const chosen = choose(programs, asked, (await readDemo(config))?.program_id);
  if (chosen) return { ...chosen, policy: program.events };
  if (asked !== undefined) throw new Error(`There is no program '${asked}'.`);
  if (programs.length === 0)
    throw new Error("There is no program yet: create one with POST /v1/programs, or begin 'rail start'.");
  throw new Error(`Which program? Give --program with one of ${namesOf(programs)}.`);
}

/** The one that was asked for, else the demo's, else the only one. */
export async function chooseOrganization(
  database: Database,
  config: Config,
  asked: string | undefined,
): Promise<Listened> {
  const organizations = await run<Choice>(
    database,
    sql`select id, id as organization_id, name from core.organization order by id`,
  );
  const chosen = choose(organizations, asked, (await readDemo(config))?.organization_id);
  if (chosen) return { ...chosen, policy: recruitment.events };
  if (asked !== undefined) throw new Error(`There is no organization '${asked}'.`);
  if (organizations.length === 0)
    throw new Error("There is no organization yet: create one with 'rail org create', or begin 'rail start'.");
  throw new Error(`Which organization? Give --organization with one of ${namesOf(organizations)}.`);
}

type Choice = Omit<Listened, 'policy'>;

function choose(all: Choice[], asked: string | undefined, demo: string | undefined): Choice | undefined {
  const byId = (wanted: string | undefined) => all.find(({ id }) => id === wanted);
  if (asked !== undefined) return byId(asked);
  return byId(demo) ?? (all.length === 1 ? all[0] : undefined);
}

const namesOf = (all: Choice[]): string =>
  all
    .slice(0, 20)
    .map(({ id, name }) => `${id} (${name})`)
    .join(', ');
