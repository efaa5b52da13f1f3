import type { Described } from './described.ts';
import { indexText, wholeText } from './llms.ts';
import { documentOf } from './openapi.ts';

/** All that is said of a product, in each form. */
export async function textsOf(described: Described): Promise<{ openapi: string; index: string; whole: string }> {
  const document = await documentOf(described);
  return {
    openapi: JSON.stringify(document),
    index: indexText(document, described),
    whole: wholeText(document, described),
  };
}
