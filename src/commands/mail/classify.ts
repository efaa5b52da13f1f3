import { jsonText } from '../../core/formats/json_text.ts';
import { TookTooLong } from '../../core/threads/timed_thread.ts';
import type { Classification } from '../../mail/incoming/classify.ts';
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

/** Prints a line for each mail or text, as soon as it is classified. */
export async function classify(files: string[], { json, jsonl, own = [] }: Options): Promise<void> {
  if (jsonl && files.length > 0) throw new UsageError('Give either files or --jsonl: --jsonl reads standard input.');
  const classifier = openClassifier();
  const classifyOne = async (mail: Unclassified['mail']): Promise<Classification> =>
    (await classifier.ask({ mail, arrived_at: new Date(), own_addresses: own, own_server })).classification;
  const classified = jsonl ? classifyLines(classifyOne) : classifyFiles(files.length > 0 ? files : ['-'], classifyOne);
  if (!json) await print(heading(jsonl ? 'ID' : 'FILE'));
  for await (const { name, ...classification } of classified) {
    const { key, value } = name;
    await print(json ? jsonText({ [key]: value, ...classification }) : row(String(value), classification));
  }
}

type Named = Classification & { name: { key: 'file' | 'id'; value: string | number } };

type ClassifyOne = (mail: Unclassified['mail']) => Promise<Classification>;

async function* classifyFiles(files: string[], classifyOne: ClassifyOne): AsyncGenerator<Named> {
  for (const file of files) {
    const classification = await attempt(async () => classifyOne(await readMail(file)), file);
    if (classification) yield { name: { key: 'file', value: file }, ...classification };
  }
}

async function* classifyLines(classifyOne: ClassifyOne): AsyncGenerator<Named> {
  let number = 0;
  for await (const line of readLines()) {
    number += 1;
    if (line.trim() === '') continue;
    const text = await attempt(() => textIn(line, number), `line ${number}`);
    const classification = text && (await attempt(() => classifyOne(text), `line ${number}`));
    if (text && classification) yield { name: { key: 'id', value: text.id }, ...classification };
  }
}

/** Reports what cannot be read, and classifies the rest all the same. */
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
