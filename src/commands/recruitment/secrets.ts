import { createInterface } from 'node:readline/promises';
import { Writable } from 'node:stream';
import { text } from 'node:stream/consumers';

/** Secrets from standard input, a line each: what an argument or a setting holds, other processes may see. On a terminal they are asked for. */
export async function readSecrets(questions: string[]): Promise<string[]> {
  if (process.stdin.isTTY) return askFor(questions);
  return (await text(process.stdin)).split(/\r?\n/).slice(0, questions.length);
}

/** Asks on the terminal, without showing the typed text. */
async function askFor(questions: string[]): Promise<string[]> {
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
  const terminal = createInterface({ input: process.stdin, output: nowhere, terminal: true });
  const interrupted = new AbortController();
  terminal.once('SIGINT', () => interrupted.abort(new Error('Interrupted.')));
  try {
    const answers: string[] = [];
    for (const question of questions) {
      process.stderr.write(`${question}: `);
      answers.push(await terminal.question('', { signal: interrupted.signal }));
      process.stderr.write('\n');
    }
    return answers;
  } finally {
    terminal.close();
  }
}
