/** Finds the pages of a site that say how to reach its owner. */
import { isOneSite } from '../pages/key.ts';
import { fold, type Page } from '../pages/page.ts';

/** In the order of how well they suit somebody who asks for a partnership. */
export const page_kinds = ['advertise', 'media_kit', 'contact', 'about', 'imprint', 'home'] as const;
export type PageKind = (typeof page_kinds)[number];

export interface ContactPage {
  url: string;
  kind: PageKind;
  /** Nothing links to it. */
  is_guessed?: boolean;
}

type Linked = Exclude<PageKind, 'home'>;

/** Parts of words on links and in their paths, in lower case and without accents. Contact pages come first: most addresses are there. */
const words: Record<Linked, RegExp> = {
  contact:
    /contact|kontakt|contatt|contato|yhteys|iletisim|kapcsolat|get in touch|reach (?:me|us)|write (?:me|us)|nous ecrire|escribenos|schreib|связ|контакт|お問い合わせ|問い合わせ|연락|문의|联系|聯絡/,
  advertise:
    /advertis|sponsor|work[ -]with[ -](?:me|us)|publicidade|partner(?:ship|schaft|iat)|collab|kooperation|zusammenarbeit|werbung|werben|annonceur|publicite|publicidad|anunci|pubblicita|colabora|parceria|publicidade|adverteren|samenwerk|reklam|wsp[oó]łprac|wspolprac|spoluprac|samarbet|samarbejd|реклам|сотрудничеств|広告|광고|广告|isbirligi/,
  media_kit:
    /media[ -]?kit|press[ -]?kit|mediadaten|kit (?:media|de presse)|kit de prensa|presskit|мединый кит|медиакит|媒体資料/,
  imprint:
    /imprint|impressum|mentions[ -]legales|aviso[ -]legal|note[ -]legali|colofon|legal[ -]notice|特定商取引|運営者/,
  about:
    /about|uber[ -](?:mich|uns)|ueber[ -](?:mich|uns)|a[ -]propos|qui (?:suis|sommes)|sobre|acerca|quien(?:es)? (?:soy|somos)|chi[ -](?:sono|siamo)|quem somos|over[ -](?:mij|ons)|o[ -](?:nas|mnie|mne)\b|om[ -](?:oss|mig|os|meg)\b|hakkimda|hakkimizda|rolunk|обо мне|о нас|o-nas|プロフィール|会社概要|について|소개|关于|關於/,
};
const order: Linked[] = ['contact', 'advertise', 'media_kit', 'imprint', 'about'];

/** The usual paths of contact pages, by language, tried when nothing links to them. English is always tried. */
const paths_by_language: Record<string, ContactPath[]> = {
  en: [
    ['contact', '/contact'],
    ['about', '/about'],
  ],
  de: [
    ['imprint', '/impressum'],
    ['contact', '/kontakt'],
  ],
  fr: [
    ['contact', '/contact'],
    ['imprint', '/mentions-legales'],
  ],
  es: [
    ['contact', '/contacto'],
    ['imprint', '/aviso-legal'],
  ],
  it: [
    ['contact', '/contatti'],
    ['about', '/chi-siamo'],
  ],
  pt: [
    ['contact', '/contato'],
    ['about', '/sobre'],
  ],
  nl: [
    ['contact', '/contact'],
    ['about', '/over-ons'],
  ],
  pl: [
    ['contact', '/kontakt'],
    ['about', '/o-nas'],
  ],
  sv: [
    ['contact', '/kontakt'],
    ['about', '/om-oss'],
  ],
  da: [
    ['contact', '/kontakt'],
    ['about', '/om-os'],
  ],
  no: [
    ['contact', '/kontakt'],
    ['about', '/om-oss'],
  ],
  cs: [
    ['contact', '/kontakt'],
    ['about', '/o-nas'],
  ],
  tr: [
    ['contact', '/iletisim'],
    ['about', '/hakkimizda'],
  ],
  ru: [
    ['contact', '/contacts'],
    ['about', '/about'],
  ],
  ja: [
    ['contact', '/contact'],
    ['about', '/about'],
  ],
};
type ContactPath = [Linked, string];
const most_guesses = 3;

/**
 * Up to `most` pages to visit after the home page: those it links to, one of each kind first, then well-known paths where it links to no contact
 * page and no imprint.
 */
export function contactPages(home: Page, most: number): ContactPage[] {
  const linked = linkedPages(home);
  const firsts = order.flatMap((kind) => linked.find((page) => page.kind === kind) ?? []);
  const others = linked.filter((page) => !firsts.includes(page));
  const has_contact = linked.some(({ kind }) => kind === 'contact' || kind === 'imprint');
  const guesses = has_contact ? [] : guessedPages(home);
  const chosen = new Map<string, ContactPage>();
  for (const page of [...firsts, ...guesses, ...others]) if (!chosen.has(page.url)) chosen.set(page.url, page);
  return [...chosen.values()].slice(0, most);
}

/** Pages of the same site alone. A link is checked by its text, then by its path. */
function linkedPages({ url, links }: Page): ContactPage[] {
  return links.flatMap((link) => {
    const target = URL.parse(link.url);
    if (target === null || !isOneSite(url, link.url)) return [];
    if (link.url === url || /\.(?:pdf|jpe?g|png|zip|docx?)$/i.test(target.pathname)) return [];
    const kind =
      kindOf(link.text.length <= 60 ? link.text : '') ??
      kindOf(target.pathname.length <= 60 ? decode(target.pathname) : '');
    return kind ? [{ url: link.url, kind }] : [];
  });
}

function guessedPages({ url, language_code }: Page): ContactPage[] {
  const { en = [], [language_code ?? 'en']: own = en } = paths_by_language;
  const paths = [...own, ...en.filter(([, path]) => own.every(([, each]) => each !== path))];
  return paths
    .slice(0, most_guesses)
    .map(([kind, path]) => ({ url: new URL(path, url).href, kind, is_guessed: true }))
    .filter((page) => isOneSite(url, page.url));
}

function kindOf(text: string): Linked | undefined {
  const folded = fold(text);
  return order
    .toSorted((a, b) => Number(b === 'media_kit') - Number(a === 'media_kit'))
    .find((kind) => words[kind].test(folded));
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
