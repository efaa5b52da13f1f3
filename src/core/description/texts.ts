import type { Described } from './described.ts';
import { indexText, wholeText } from './llms.ts';
import { documentOf } from './openapi.ts';

/** All that is said of a product, in each form: `openapi.json`, `llms.txt` and `llms-full.txt`. */
export interface Texts {
  openapi: string;
  index: string;
  whole: string;
}

/** Takes most of a second of CPU at once. */
export async function textsOf(described: Described): Promise<Texts> {
  const document = await documentOf(described);
  return {
    openapi: JSON.stringify(document),
    index: indexText(document, described),
    whole: wholeText(document, described),
  };
}
