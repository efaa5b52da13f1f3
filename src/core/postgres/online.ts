/** Tells of each statement of pending migrations whom it keeps waiting, and for what. */
import { type Lock, locksOf, modes } from './locks.ts';
import { runsOutside } from './outside_transaction.ts';
import { type Statement, statementsOf } from './statements.ts';

interface File {
  name: string;
  text: string;
}

/** A statement that takes locks on tables that others use. */
export interface Effect {
  file: string;
  statement: Statement;
  /** Those on tables that were there before the files. */
  locks: Lock[];
  /** False where the statement does not say which locks it takes. */
  is_known: boolean;
}

/** From this lock on writers wait. */
const blocks_writes = modes.indexOf('SHARE');
export const keepsWriters = ({ mode }: Pick<Lock, 'mode'>): boolean => modes.indexOf(mode) >= blocks_writes;

/**
 * Reads the statements of files that run in one order.
 * @param isThere tells whether a table, view or index is there before them
 */
export function effectsOf(files: File[], isThere: (name: string) => boolean): Effect[] {
  const made = new Set<string>();
  const checks = new Map<string, string>();
  const proven = new Set<string>();
  const effects: Effect[] = [];
  for (const file of files) {
    for (const statement of statementsOf(file.text)) {
      noteCreated(statement, made);
      noteChecks(statement, checks, proven);
      const found = locksOf(statement);
      const locks = (found ?? []).flatMap((one) => {
        if (made.has(one.table) || !isThere(one.table)) return [];
        const is_proven = one.not_null !== undefined && proven.has(`${one.table} ${one.not_null}`);
        return [is_proven ? { ...one, work: 'none' as const } : one];
      });
      if (locks.length > 0 || !found)
        effects.push({ file: file.name, statement, locks, is_known: found !== undefined });
    }
  }
  return effects;
}

function noteCreated({ words }: Statement, made: Set<string>): void {
  const nth = words.indexOf('table');
  if (words[0] !== 'create' || nth === -1 || nth > 2) return;
  const name = words.slice(nth + 1).find((word) => !['if', 'not', 'exists'].includes(word));
  if (name !== undefined) made.add(name);
}

/** A validated check that a column is not null spares `set not null` the reading. */
function noteChecks({ words }: Statement, checks: Map<string, string>, proven: Set<string>): void {
  const [alter, kind, table, verb, , name] = words;
  if (alter !== 'alter' || kind !== 'table') return;
  const [added] = /(?<=^check \( )\w+(?= is not null \) not valid$)/.exec(words.slice(6).join(' ')) ?? [];
  if (verb === 'add' && added !== undefined) checks.set(`${table} ${name}`, added);
  const column = checks.get(`${table} ${name}`);
  if (verb === 'validate' && column !== undefined) proven.add(`${table} ${column}`);
}

const remedies = {
  reads:
    "Add a constraint 'not valid', and validate it in a file that runs outside a transaction; 'set not null' comes after a validated check.",
  indexes:
    "Create the index 'concurrently', in a file that runs outside a transaction; a constraint takes it 'using index'.",
  writes: 'Add a column, fill it in batches, and use it from the next version on.',
};

/**
 * Returns what would keep requests waiting for longer than it takes to change the catalogue, or fail where tables have rows: a sentence each.
 * A lock is held until the transaction commits, so that in one that has taken a lock no table may be gone through.
 */
export function whatIsNotOnline(files: File[], isThere: (name: string) => boolean): string[] {
  const found: string[] = [];
  let held: string | undefined;
  const effects = effectsOf(files, isThere);
  for (const { name: file, text } of files) {
    const is_outside = runsOutside({ text });
    if (is_outside) held = undefined;
    for (const { statement, locks, is_known } of effects.filter((effect) => effect.file === file)) {
      const say = (fault: string) => found.push(`${file}: '${statement.text}' ${fault}`);
      if (!is_known)
        say("does not say which tables it locks. Write its statements out, or move it into a function of 'sql/live'.");
      if (lacksDefault(statement)) say('fails on a table with rows. Add a default.');
      for (const one of locks) {
        if (keepsWriters(one) && !is_outside) held ??= one.table;
        if (one.work === 'none') continue;
        const waiting = keepsWriters(one) ? one.table : held;
        if (waiting !== undefined)
          say(`keeps writers of ${waiting} waiting while it goes through ${one.table}. ${remedies[one.work]}`);
        else if (one.work === 'writes')
          say(`locks the rows of ${one.table} until it has written all of them. ${remedies.writes}`);
      }
      if (is_outside) held = undefined;
    }
    if (is_outside) held = undefined;
  }
  return found;
}

function lacksDefault({ words }: Statement): boolean {
  const said = words.join(' ');
  return (
    /^alter table .* add column /.test(said) &&
    said.includes(' not null') &&
    !/ default | generated | is not null/.test(said)
  );
}
