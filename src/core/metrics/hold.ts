/**
 * Finds out that the database is an older state of itself: then emails and payouts are held until an operator resumes them (`core.hold()`). Who
 * sends asks Postgres by itself; here it is noted, told and shown.
 */
import { existsSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Logger } from 'pino';
import sql from 'sql-template-tag';
import { type Database, run } from '../postgres/database.ts';
import { logFailure } from '../postgres/outage.ts';
import { gauge } from './registry.ts';

const look_every_ms = 10_000;
const tell_every_ms = 600_000;

export interface Hold {
  /** The time at which it was found. */
  since: string;
  /** The time of the state that was restored: what happened after it may be lost. */
  state_at: string;
  /** The sign by which it was found. */
  reason: string;
}

let seen: { hold: Hold | undefined } | undefined;

gauge(
  'rail_held',
  {
    help: 'Whether emails and payouts are held, because the database was restored to an older state: 1, or 0. `npx --no rail resume` lets them go on.',
    row: 'Is it well',
    title: 'Emails and payouts are held',
    alerts: [
      {
        name: 'RailHeld',
        expr: 'max(rail_held) > 0',
        for: '1m',
        severity: 'critical',
        summary: 'The database was restored to an older state: no emails and payouts leave.',
        remedy: "Run 'npx --no rail resume --dry-run' to see what waits, and 'npx --no rail resume' to let it go on.",
      },
    ],
  },
  [],
  (held) => {
    if (seen) held.set(seen.hold ? 1 : 0);
  },
);

/** @returns undefined where nothing is held, or nobody has looked yet */
export async function restoredHold(on: Pick<Database, 'query'>): Promise<Hold | undefined> {
  const [hold] = await run<Hold>(
    on,
    sql`select c.held_since as since, c.state_at, c.held_for as reason from core.cluster c where c.held_since is not null`,
  );
  return hold;
}

/** Returns the hold for `/readyz`, as this process saw it last: nothing where there is none. */
export const heldNow = (): { held?: string } => (seen?.hold ? { held: holdText(seen.hold) } : {});

/** A sentence for people. */
export const heldSince = (hold: Hold): string => `Emails and payouts are held since ${hold.since}: ${causeOf(hold)}.`;

/** The sentence, and how to see more. */
export const holdText = (hold: Hold): string =>
  `${heldSince(hold)} Run 'npx --no rail resume --dry-run' to see what waits.`;

/** The reason for a hold, as the rest of a sentence. */
export const causeOf = ({ state_at, reason }: Hold): string =>
  reason === 'an operator'
    ? `an operator held them, as after a restore to the state of ${state_at}`
    : `the database was restored to its state of ${state_at} (found by ${reason})`;

interface Beat {
  beat: number;
  held_since: string | null;
  state_at: string | null;
  reason: string | null;
}

/**
 * Looks now and every ten seconds: by what it remembers, a process finds that the state is an older one, and vouches for a replica that was promoted.
 * @param file remembers it for the next process, where its folder is there
 * @returns what ends that
 */
export async function watchHold(database: Database, file: string, log: Logger): Promise<() => void> {
  const epoch = await readEpoch(database).catch(() => undefined);
  let beat = await remembered(file, epoch);
  let told_at = Number.NEGATIVE_INFINITY;
  const look = async () => {
    const [row] = await run<Beat>(database, sql`select * from core.beat(${beat}::bigint)`);
    if (!row) return;
    beat = row.beat;
    await remember(file, { epoch, beat });
    const { held_since: since, state_at, reason } = row;
    const hold = since === null ? undefined : { since, state_at: state_at as string, reason: reason as string };
    if (seen?.hold && !hold) log.info('emails and payouts go on');
    seen = { hold };
    if (!hold) told_at = Number.NEGATIVE_INFINITY;
    else if (performance.now() >= told_at + tell_every_ms) {
      told_at = performance.now();
      log.warn(hold, holdText(hold));
    }
  };
  const tryLook = () =>
    look().catch((error) => logFailure(log, error, 'it was not looked whether the database was restored'));
  await tryLook();
  const timer = setInterval(tryLook, look_every_ms).unref();
  return () => clearInterval(timer);
}

async function readEpoch(database: Database): Promise<string | undefined> {
  const [row] = await run<{ epoch: string }>(database, sql`select core.database_epoch() as epoch`);
  return row?.epoch;
}

interface Remembered {
  epoch: string | undefined;
  beat: number;
}

/** The last beat that a process here had of this database. Null: none is known. */
const remembered = (file: string, epoch: string | undefined): Promise<number | null> =>
  readFile(file, 'utf8').then(
    (text) => {
      const last = JSON.parse(text) as Remembered;
      return epoch !== undefined && last.epoch === epoch ? last.beat : null;
    },
    () => null,
  );

/** It helps where it can be written, and is not needed. */
async function remember(file: string, last: Remembered): Promise<void> {
  if (last.epoch === undefined || !existsSync(dirname(file))) return;
  await writeFile(file, JSON.stringify(last)).catch(() => {});
}
