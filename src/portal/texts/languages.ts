import { language_codes } from '../../program/partners/mails/languages.ts';
import { de } from './de.ts';
import { en } from './en.ts';
import { es } from './es.ts';
import { fr } from './fr.ts';
import { it } from './it.ts';
import { pt } from './pt.ts';
import type { PortalTexts } from './texts.ts';

const languages: Readonly<Record<string, PortalTexts>> = { de, en, es, fr, it, pt };

export const textsIn = (language: string): PortalTexts => languages[language] ?? en;

/** Returns the language of a page: the partner's, else the first that the browser asks for and there is, else English. */
export function wantedLanguage(own: string | null, accepted = ''): string {
  const asked = accepted
    .slice(0, 500)
    .split(',', 20)
    .map((one) => one.trim().slice(0, 2).toLowerCase());
  return [own ?? '', ...asked].find((code) => (language_codes as readonly string[]).includes(code)) ?? 'en';
}
