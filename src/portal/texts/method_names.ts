import { capitalized } from '../../pages/format.ts';
import type { MailTexts } from '../../program/partners/mails/texts.ts';

/** The names of payout methods as a page has them: those of the mails, which stand within a sentence there. */
export const methodNames = ({ methods }: Pick<MailTexts, 'methods'>): MailTexts['methods'] =>
  Object.fromEntries(
    Object.entries(methods).map(([method, name]) => [method, capitalized(name)]),
  ) as MailTexts['methods'];
