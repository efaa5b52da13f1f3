/** The lock that a statement of a migration takes on a table, and what it does while it holds it, as Postgres documents it. */
import type { Statement } from './statements.ts';

/** From the weakest to the strongest. */
export const modes = [
  'ACCESS SHARE',
  'ROW SHARE',
  'ROW EXCLUSIVE',
  'SHARE UPDATE EXCLUSIVE',
  'SHARE',
  'SHARE ROW EXCLUSIVE',
  'EXCLUSIVE',
  'ACCESS EXCLUSIVE',
] as const;
export type Mode = (typeof modes)[number];

/** The part of the table that it goes through: nothing, every row, every row into an index, or every row to be written again. */
export type Work = 'none' | 'reads' | 'indexes' | 'writes';

export interface Lock {
  /** With its schema; the index for a `drop index`. */
  table: string;
  mode: Mode;
  work: Work;
  /** The column that is to have no nulls any more: a validated check spares it the reading. */
  not_null?: string;
}

/** @returns undefined where the statement does not say what it does, such as `do` */
export function locksOf({ words }: Statement): Lock[] | undefined {
  const [verb = '', ...rest] = words;
  if (verb === 'do') return undefined;
  return (verbs[verb] ?? none)(rest);
}

const none = (): Lock[] => [];
const lock = (table: string | undefined, mode: Mode, work: Work = 'none'): Lock[] =>
  table === undefined ? [] : [{ table, mode, work }];

const verbs: Record<string, (words: string[]) => Lock[] | undefined> = {
  create,
  alter: (words) => {
    const [kind = '', ...rest] = words;
    if (kind === 'table') return alterTable(without(rest));
    if (kind === 'view') return lock(without(rest)[0], 'ACCESS EXCLUSIVE');
    return ['policy', 'trigger', 'rule'].includes(kind) ? lock(after(rest, 'on'), 'ACCESS EXCLUSIVE') : [];
  },
  drop: (words) => {
    const [kind = '', ...rest] = words[0] === 'materialized' ? words.slice(1) : words;
    if (kind === 'index') {
      const is_online = rest[0] === 'concurrently';
      return lock(without(rest)[0], is_online ? 'SHARE UPDATE EXCLUSIVE' : 'ACCESS EXCLUSIVE');
    }
    if (kind === 'table' || kind === 'view')
      return without(rest)
        .filter(isName)
        .flatMap((name) => lock(name, 'ACCESS EXCLUSIVE'));
    return ['policy', 'trigger', 'rule'].includes(kind) ? lock(after(rest, 'on'), 'ACCESS EXCLUSIVE') : [];
  },
  comment: ([, kind, name = '']) => {
    if (kind === 'table') return lock(name, 'SHARE UPDATE EXCLUSIVE');
    return kind === 'column' ? lock(name.split('.').slice(0, -1).join('.'), 'SHARE UPDATE EXCLUSIVE') : [];
  },
  insert: ([, table]) => lock(table, 'ROW EXCLUSIVE'),
  update: (words) => lock(without(words)[0], 'ROW EXCLUSIVE', 'writes'),
  delete: ([, ...rest]) => lock(without(rest)[0], 'ROW EXCLUSIVE', 'writes'),
  merge: ([, ...rest]) => lock(without(rest)[0], 'ROW EXCLUSIVE', 'writes'),
  truncate: (words) =>
    without(words.filter((word) => word !== 'table'))
      .filter(isName)
      .flatMap((name) => lock(name, 'ACCESS EXCLUSIVE')),
  call: ([procedure, , table = '']) =>
    procedure === 'core.protect_tenant_table' ? lock(table.slice(1), 'ACCESS EXCLUSIVE') : undefined,
};

function create(words: string[]): Lock[] {
  const nth = words.findIndex((word) => ['table', 'index', 'trigger', 'policy', 'rule', 'view'].includes(word));
  const before = words.slice(0, nth);
  const rest = words.slice(nth + 1);
  if (nth === -1 || before.some((word) => !prefixes.has(word))) return [];
  switch (words[nth]) {
    case 'table':
      return [...lock(partitioned(rest), 'ACCESS EXCLUSIVE'), ...referenced(rest, 'none')];
    case 'index':
      return lock(
        after(
          rest.filter((word) => word !== 'only'),
          'on',
        ),
        rest[0] === 'concurrently' ? 'SHARE UPDATE EXCLUSIVE' : 'SHARE',
        'indexes',
      );
    case 'view':
      return before.includes('replace') ? lock(rest[0], 'ACCESS EXCLUSIVE') : [];
    case 'trigger':
      return lock(after(rest, 'on'), 'SHARE ROW EXCLUSIVE');
    case 'policy':
      return lock(after(rest, 'on'), 'ACCESS EXCLUSIVE');
    default:
      return lock(after(rest, 'to'), 'ACCESS EXCLUSIVE');
  }
}

/** Words that may stand between `create` and the kind of a thing. */
const prefixes = new Set(['or', 'replace', 'unique', 'constraint', 'unlogged', 'materialized', 'recursive']);

const partitioned = (words: string[]): string | undefined =>
  words.find((_, nth) => words[nth - 2] === 'partition' && words[nth - 1] === 'of');

const referenced = (words: string[], work: Work): Lock[] =>
  words.flatMap((word, nth) => (word === 'references' ? lock(words[nth + 1], 'SHARE ROW EXCLUSIVE', work) : []));

function alterTable([table = '', ...rest]: string[]): Lock[] {
  return actionsOf(rest).flatMap((action) => alteration(table, action));
}

function alteration(table: string, words: string[]): Lock[] {
  const [verb = '', second = '', third = ''] = words;
  const said = words.join(' ');
  if (verb === 'add') return adding(table, words.slice(1));
  if (verb === 'validate') return lock(table, 'SHARE UPDATE EXCLUSIVE', 'reads');
  if (verb === 'attach') return [...lock(table, 'SHARE UPDATE EXCLUSIVE'), ...lock(third, 'ACCESS EXCLUSIVE', 'reads')];
  if (verb === 'detach' && words.includes('concurrently')) return lock(table, 'SHARE UPDATE EXCLUSIVE');
  if ((verb === 'enable' || verb === 'disable') && words.includes('trigger')) return lock(table, 'SHARE ROW EXCLUSIVE');
  if ((verb === 'set' || verb === 'reset') && second === '(') return lock(table, 'SHARE UPDATE EXCLUSIVE');
  if (verb === 'set' && /^set (?:logged|unlogged|tablespace|access)/.test(said))
    return lock(table, 'ACCESS EXCLUSIVE', 'writes');
  if (verb !== 'alter') return lock(table, 'ACCESS EXCLUSIVE');
  const [column, ...change] = second === 'column' ? words.slice(2) : words.slice(1);
  const to = change.join(' ');
  if (/^(?:set data )?type /.test(to)) return lock(table, 'ACCESS EXCLUSIVE', 'writes');
  if (/^set (?:statistics|\()/.test(to)) return lock(table, 'SHARE UPDATE EXCLUSIVE');
  if (to !== 'set not null') return lock(table, 'ACCESS EXCLUSIVE');
  return [{ table, mode: 'ACCESS EXCLUSIVE', work: 'reads', not_null: column as string }];
}

function adding(table: string, words: string[]): Lock[] {
  const named = words[0] === 'constraint' ? words.slice(2) : words;
  const not_valid = words.at(-2) === 'not' && words.at(-1) === 'valid';
  switch (named[0]) {
    case 'check':
      return lock(table, 'ACCESS EXCLUSIVE', not_valid ? 'none' : 'reads');
    case 'foreign':
      return [...lock(table, 'SHARE ROW EXCLUSIVE', not_valid ? 'none' : 'reads'), ...referenced(named, 'none')];
    case 'unique':
    case 'primary':
      return lock(table, 'ACCESS EXCLUSIVE', named.includes('using') ? 'none' : 'indexes');
    case 'exclude':
      return lock(table, 'ACCESS EXCLUSIVE', 'indexes');
    default:
      return [...lock(table, 'ACCESS EXCLUSIVE', workOfColumn(named)), ...referenced(named, 'none')];
  }
}

/** The functions that a default may call and that give one value for the whole statement. */
const stable = new Set(['now', 'numeric', 'varchar', 'char']);

function workOfColumn(words: string[]): Work {
  if (words.some((word) => ['stored', 'identity', 'serial', 'bigserial', 'smallserial'].includes(word)))
    return 'writes';
  const from = words.indexOf('default');
  const calls = words.some(
    (word, nth) => from !== -1 && nth > from && word === '(' && !stable.has(words[nth - 1] as string),
  );
  const is_checked = words.includes('check');
  if (calls && !is_checked) return 'writes';
  if (words.includes('unique') || words.includes('primary')) return 'indexes';
  return is_checked || words.includes('references') ? 'reads' : 'none';
}

/** Splits at the commas outside of parentheses. */
function actionsOf(words: string[]): string[][] {
  const actions: string[][] = [[]];
  let depth = 0;
  for (const word of words) {
    depth += word === '(' ? 1 : word === ')' ? -1 : 0;
    if (word === ',' && depth === 0) actions.push([]);
    else actions.at(-1)?.push(word);
  }
  return actions;
}

const fillers = new Set(['if', 'not', 'exists', 'only', 'concurrently']);
const without = (words: string[]): string[] => words.slice(words.findIndex((word) => !fillers.has(word)));
const after = (words: string[], word: string): string | undefined => words[words.indexOf(word) + 1];
const isName = (word: string): boolean => /^[a-z_]/.test(word) && word !== 'cascade' && word !== 'restrict';
