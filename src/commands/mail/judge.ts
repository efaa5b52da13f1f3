import { jsonText } from '../../core/formats/json_text.ts';
import { TookTooLong } from '../../core/threads/timed_thread.ts';
import type { Judgement } from '../../mail/incoming/judge.ts';
import { openClassifier } from '../../recruitment/reading/classifier.ts';
import type { Unclassified } from '../../recruitment/reading/classify.ts';
import { UsageError } from '../command.ts';
import { print, readLines, readMail, textIn } from './input.ts';
import { heading, row } from './picture.ts';

/** The authentication of a mail is not shown. */
const own_server = { imap_host: '', hosts: [], authserv_id: null };

interface Options {
  json?: boolean;
  jsonl?: boolean;
  /** Addresses of the inbox. */
  own?: string[];
}

/** Prints a line for each mail or text, as soon as it is judged. */
export async function judge(files: string[], { json, jsonl, own = [] }: Options): Promise<void> {
  if (jsonl && files.length > 0) throw new UsageError('Give either files or --jsonl: --jsonl reads standard input.');
  const classifier = openClassifier();
  const judgeOne = async (mail: Unclassified['mail']): Promise<Judgement> =>
    (await classifier.ask({ mail, arrived_at: new Date(), own_addresses: own, own_server })).judgement;
  const judged = jsonl ? judgeLines(judgeOne) : judgeFiles(files.length > 0 ? files : ['-'], judgeOne);
  if (!json) await print(heading(jsonl ? 'ID' : 'FILE'));
  for await (const { name, ...judgement } of judged) {
    const { key, value } = name;
    await print(json ? jsonText({ [key]: value, ...judgement }) : row(String(value), judgement));
  }
}

type Named = Judgement & { name: { key: 'file' | 'id'; value: string | number } };

type JudgeOne = (mail: Unclassified['mail']) => Promise<Judgement>;

async function* judgeFiles(files: string[], judgeOne: JudgeOne): AsyncGenerator<Named> {
  for (const file of files) {
    const judgement = await attempt(async () => judgeOne(await readMail(file)), file);
    if (judgement) yield { name: { key: 'file', value: file }, ...judgement };
  }
}

async function* judgeLines(judgeOne: JudgeOne): AsyncGenerator<Named> {
  let number = 0;
  for await (const line of readLines()) {
    number += 1;
    if (line.trim() === '') continue;
    const text = await attempt(() => textIn(line, number), `line ${number}`);
    const judgement = text && (await attempt(() => judgeOne(text), `line ${number}`));
    if (text && judgement) yield { name: { key: 'id', value: text.id }, ...judgement };
  }
}

/** Reports what cannot be read, and judges the rest all the same. */
async function attempt<Result>(work: () => Result | Promise<Result>, name: string): Promise<Result | undefined> {
  try {
    return await work();
  } catch (error) {
    const { message } = error as Error;
    console.error(`rail: ${error instanceof TookTooLong ? `${name}: ${message}` : message}`);
    process.exitCode = 1;
    return undefined;
  }
}
