/** The log of `rail start` where a person looks on: in a file, so that the key and the first request stay on the screen. */
import { closeSync, fstatSync, mkdirSync, openSync, renameSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { type Logger, pino } from 'pino';
import type { Config } from '../config.ts';
import { createLog, logOptions } from '../service.ts';

/** The file and the one before it take at most twice this. */
const most_bytes = 10 * 1024 * 1024;

export const logFile = ({ RAIL_DATA_DIR }: Pick<Config, 'RAIL_DATA_DIR'>): string => join(RAIL_DATA_DIR, 'rail.log');

/** On a terminal: JSON to the file, and warnings as sentences to the terminal. Elsewhere, and where there can be no file, JSON to standard error. */
export function createStartLog(config: Config, terminal = process.stderr): Logger {
  if (!terminal.isTTY || config.LOG_LEVEL === 'silent') return createLog(config);
  const file = openFile(config);
  if (file === undefined) return createLog(config);
  const level = config.LOG_LEVEL;
  const sentences = { write: (line: string) => void terminal.write(sentenceOf(line)) };
  return pino(
    logOptions(config),
    pino.multistream([
      { level, stream: file },
      { level: level === 'error' || level === 'fatal' ? level : 'warn', stream: sentences },
    ]),
  );
}

function openFile(config: Config): RotatedFile | undefined {
  try {
    mkdirSync(config.RAIL_DATA_DIR, { recursive: true, mode: 0o711 });
    return new RotatedFile(logFile(config));
  } catch {
    return undefined;
  }
}

/** The message of a line of the log, and why. */
export function sentenceOf(line: string): string {
  const { level, msg, err } = JSON.parse(line) as { level: number; msg?: string; err?: { message?: string } };
  const kind = level >= 50 ? 'error' : 'warning';
  const reason = err?.message && err.message !== msg ? `: ${err.message}` : '';
  return `rail: ${kind}: ${msg ?? 'something failed'}${reason}\n`;
}

/** A file that only its owner reads. When it is full it takes the place of the one before, and a new one begins. */
export class RotatedFile {
  readonly #path: string;
  readonly #most: number;
  #file: number;
  #bytes: number;

  constructor(path: string, most = most_bytes) {
    this.#path = path;
    this.#most = most;
    this.#file = openSync(path, 'a', 0o600);
    this.#bytes = fstatSync(this.#file).size;
  }

  /** A log that cannot be written, as on a full disk, stops nothing. */
  write(line: string): void {
    try {
      if (this.#bytes > 0 && this.#bytes + line.length > this.#most) this.#rotate();
      this.#bytes += writeSync(this.#file, line);
    } catch {}
  }

  #rotate(): void {
    renameSync(this.#path, `${this.#path}.1`);
    const next = openSync(this.#path, 'a', 0o600);
    closeSync(this.#file);
    this.#file = next;
    this.#bytes = 0;
  }
}
