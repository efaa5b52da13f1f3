import { z } from 'zod';
import { documentedEnum, text } from '../../../core/values/fields.ts';
import { NoAnswer } from './dns.ts';

export const verdict = z.object({
  status: documentedEnum({
    pass: 'the record is there and valid',
    missing: 'there is no record',
    invalid: 'the record has a fault that receivers act on',
    unknown: 'DNS does not say',
  }),
  record: text.nullable().describe('The record in DNS. Null if none was found.'),
  detail: text.describe('One sentence or more: what was found, and how to correct it.'),
});
export type Verdict = z.infer<typeof verdict>;

/** A record that receivers treat as an error. The message says what is wrong with it, and ends the sentence `The record …`. */
export class RecordFault extends Error {
  override readonly name = 'RecordFault';
}

/** @param name of the record in sentences: `SPF record of acme.com`  @throws what is neither a fault of the record nor of DNS */
export async function verdictOf(
  name: string,
  check: () => Promise<Verdict>,
  record: () => Promise<string | null>,
): Promise<Verdict> {
  try {
    return await check();
  } catch (error) {
    if (error instanceof NoAnswer) {
      const detail = `The name servers did not answer for the ${name} in time. Retry later.`;
      return { status: 'unknown', record: null, detail };
    }
    if (!(error instanceof RecordFault)) throw error;
    return { status: 'invalid', record: await record(), detail: `The ${name} ${error.message}` };
  }
}
