/** Finds the organization, program or brand of a command: the one that was asked for, else the only one. */
import sql, { raw } from 'sql-template-tag';
import { type Database, run } from '../core/postgres/database.ts';
import { type Opened, UsageError } from './command.ts';

export interface Chosen {
  id: string;
  organization_id: string;
  name: string;
}

const nouns = {
  organization: {
    from: raw('(select o.*, o.id as organization_id from core.organization o) t'),
    unknown: (id: string) => `There is no organization '${id}'. 'npx --no rail org list' lists them.`,
    none: "There is no organization yet: create one with 'npx --no rail org create', or begin 'npx --no rail start'.",
  },
  program: {
    from: raw('program.program t'),
    unknown: (id: string) => `There is no program '${id}'.`,
    none: "There is no program yet: create one with POST /v1/programs, or begin 'npx --no rail start'.",
  },
  brand: {
    from: raw('recruitment.brand t where t.deleted_at is null'),
    unknown: (id: string) => `There is no brand '${id}'.`,
    none: 'There is no brand yet: create one with POST /recruitment/v1/brands.',
  },
};

const most_named = 20;

/**
 * @param asked its id, as an option gave it
 * @param or_demo takes the demo's where there are several: of commands that show
 * @throws Error where there is none; UsageError where it has to be said which
 */
export async function choose(
  { store, config }: Pick<Opened, 'store' | 'config'>,
  noun: keyof typeof nouns,
  asked: string | undefined,
  { or_demo = false } = {},
): Promise<Chosen> {
  const { from, unknown, none } = nouns[noun];
  const wanted = asked ?? null;
  const preferred = or_demo ? await demoId(config, noun) : null;
  const found = await run<Chosen>(
    store.database,
    sql`select f.id, f.organization_id, f.name from (select t.* from ${from}) f
      where ${wanted}::text is null or f.id = ${wanted}
      order by f.id = ${preferred}::text desc nulls last, f.id
      limit ${most_named + 1}`,
  );
  const [first] = found;
  if (!first) throw new Error(asked === undefined ? none : unknown(asked));
  if (found.length === 1 || first.id === preferred) return first;
  const names = found.slice(0, most_named).map(({ id, name }) => `${id} (${name})`);
  throw new UsageError(`Which ${noun}? Give --${noun} with one of ${names.join(', ')}.`);
}

/** Refuses an organization that is misspelt, in commands that show what it has: it would have nothing. @throws Error where there is no such organization */
export async function requireOrganization(database: Database, id: string): Promise<void> {
  const [known] = await run(database, sql`select o.id from core.organization o where o.id = ${id}`);
  if (!known) throw new Error(nouns.organization.unknown(id));
}

/** Reads the id from the demo, which loads all products: only where it is needed. */
async function demoId(config: Opened['config'], noun: keyof typeof nouns): Promise<string | null> {
  const { readDemo } = await import('./demo.ts');
  return (await readDemo(config))?.[`${noun}_id`] ?? null;
}
