import type { Operation } from '../resource/operation.ts';
import { nounOf } from '../values/noun.ts';

/** The verbs of operations' names that differ in a title. */
const verbs: Record<string, string> = { get: 'retrieve', put: 'set' };

/** The short name of an operation, as a menu shows it: `Refund a sale` of `sales.refund`, `Set a tax form` of `partners.put_tax_form`. */
export function titleOf({ name, path, title }: Operation, root: string, noun: string): string {
  if (title !== undefined) return title;
  const [verb = '', ...words] = (name.split('.').at(-1) as string).split('_');
  const plural = path.slice(root.length).split('/')[1] as string;
  const object = words.length > 0 ? words.join(' ') : nounOf(noun);
  return sentenceCase(verb === 'list' ? `list ${nounOf(plural)}` : `${verbs[verb] ?? verb} ${withArticle(object)}`);
}

/** `Webhook endpoints` of `webhook_endpoints`. */
export const tagTitle = (tag: string): string => sentenceCase(nounOf(tag));

const withArticle = (noun: string): string => `${/^[aeioA]/.test(noun) ? 'an' : 'a'} ${noun}`;
const sentenceCase = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);
