import { type Asker, type Judgement, judgeMail, judgeMessage } from '../../mail/incoming/judge.ts';
import { plainMessage } from '../../mail/incoming/message/message.ts';
import { judgeReply } from '../../recruitment/replies/judge.ts';
import { UsageError } from '../command.ts';
import { print, readLines, readMail, textIn } from './input.ts';
import { heading, row } from './picture.ts';

interface Options {
  json?: boolean;
  jsonl?: boolean;
  /** Addresses of the inbox. */
  own?: string[];
}

/** Prints a line for each mail or text, as soon as it is judged. */
export async function judge(files: string[], { json, jsonl, own = [] }: Options): Promise<void> {
  if (jsonl && files.length > 0) throw new UsageError('Give either files or --jsonl: --jsonl reads standard input.');
  const asker: Asker = { own_addresses: own, readMeaning: judgeReply, now: new Date() };
  const judged = jsonl ? judgeLines(asker) : judgeFiles(files.length > 0 ? files : ['-'], asker);
  if (!json) await print(heading(jsonl ? 'ID' : 'FILE'));
  for await (const { name, ...judgement } of judged) {
    const { key, value } = name;
    await print(json ? JSON.stringify({ [key]: value, ...judgement }) : row(String(value), judgement));
  }
}

type Named = Judgement & { name: { key: 'file' | 'id'; value: string | number } };

async function* judgeFiles(files: string[], asker: Asker): AsyncGenerator<Named> {
  for (const file of files) {
    const raw = await attempt(() => readMail(file));
    if (raw) yield { name: { key: 'file', value: file }, ...(await judgeMail(raw, asker)) };
  }
}

async function* judgeLines(asker: Asker): AsyncGenerator<Named> {
  let number = 0;
  for await (const line of readLines()) {
    number += 1;
    if (line.trim() === '') continue;
    const text = await attempt(() => textIn(line, number));
    if (text) yield { name: { key: 'id', value: text.id }, ...judgeMessage(plainMessage(text), asker) };
  }
}

/** What cannot be read is told, and the rest is judged all the same. */
async function attempt<Result>(work: () => Result | Promise<Result>): Promise<Result | undefined> {
  try {
    return await work();
  } catch (error) {
    console.error(`rail: ${(error as Error).message}`);
    process.exitCode = 1;
    return undefined;
  }
}
