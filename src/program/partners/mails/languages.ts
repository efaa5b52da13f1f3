import { de } from './de.ts';
import { en } from './en.ts';
import { es } from './es.ts';
import { fr } from './fr.ts';
import { it } from './it.ts';
import { pt } from './pt.ts';
import type { MailTexts } from './texts.ts';

const languages: Readonly<Record<string, MailTexts>> = { de, en, es, fr, it, pt };

/** The languages that partners are written to in, and that the portal speaks. */
export const language_codes = ['en', 'de', 'fr', 'es', 'it', 'pt'] as const;

/** Their names, each in itself. */
export const language_names: Readonly<Record<(typeof language_codes)[number], string>> = {
  en: 'English',
  de: 'Deutsch',
  fr: 'Français',
  es: 'Español',
  it: 'Italiano',
  pt: 'Português',
};

/** Returns the language to write in: English where there is none of theirs. @param code ISO 639-1 */
export const languageOf = (code: string | null): string =>
  code !== null && Object.hasOwn(languages, code.toLowerCase()) ? code.toLowerCase() : 'en';

export const textsIn = (language: string): MailTexts => languages[languageOf(language)] as MailTexts;
