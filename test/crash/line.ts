import type { Caller, Rail } from '../harness.ts';
import { type Gate, type Process, type Statement, startGate, startProcess } from '../processes.ts';
import { bringsJobs, driveSlice, faultsOf, isWork, openSlice } from './slice.ts';

/** A worker behind a gate, and a merchant whose slices it works on. A new worker takes the place of one that was killed. */
export interface Line {
  rail: Rail;
  gate: Gate;
  merchant: Caller;
  worker: Process;
}

export async function openLine(rail: Rail): Promise<Line> {
  const gate = await startGate(rail.url);
  return { rail, gate, merchant: await rail.organization(), worker: await startProcess('worker', gate.url) };
}

/** Goes through a slice undisturbed. @returns how many statements the worker needs for it */
export async function countStatements(line: Line): Promise<number> {
  let statements = 0;
  void line.gate.stopAt('before', (statement) => {
    if (isWork(statement)) statements++;
    return false;
  });
  const slice = await openSlice(line.merchant);
  await driveSlice(line.rail, slice);
  const faults = await faultsOf(line.rail, slice);
  line.gate.disarm();
  if (faults.length > 0) throw new Error(faults.join('\n'));
  return statements;
}

/**
 * Goes through a slice and kills the worker at its nth statement: before Postgres has it, after Postgres has run it and before the worker
 * knows, or (`jobs`) when it was given jobs for the nth time.
 * @returns what is wrong once a new worker has done the rest; whether it came to the kill
 */
export async function crashAt(
  line: Line,
  side: 'before' | 'after' | 'jobs',
  nth: number,
): Promise<{ killed: boolean; text: string; faults: string[] }> {
  const { rail, gate } = line;
  const slice = await openSlice(line.merchant);
  let seen = 0;
  let text = '';
  const picks = (statement: Statement, answer: Buffer | undefined): boolean => {
    const counts = side === 'jobs' ? bringsJobs(statement, answer) : answer === undefined && isWork(statement);
    if (!counts || ++seen !== nth) return false;
    text = statement.text.replaceAll(/\s+/g, ' ').trim().slice(0, 80);
    return true;
  };
  let replaced: Promise<void> | undefined;
  void gate.stopAt(side === 'before' ? 'before' : 'after', picks).then(() => {
    replaced = replace(line);
  });
  await driveSlice(rail, slice);
  gate.disarm();
  await replaced;
  return { killed: replaced !== undefined, text, faults: await faultsOf(rail, slice) };
}

async function replace(line: Line): Promise<void> {
  await line.worker.end('SIGKILL');
  line.gate.cut();
  line.worker = await startProcess('worker', line.gate.url);
}
