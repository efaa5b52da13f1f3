/**
 * Text in the characters that every bank takes.
 *
 * The rule is EPC217-08 of the European Payments Council ("SEPA Requirements for an Extended Character Set"): a letter with a mark becomes
 * the letter, other letters and symbols become what stands for them, and what has no replacement becomes a full stop.
 */

/** Letters that do not decompose to a Latin letter by themselves, in lower case. */
const latin_letters: Record<string, string> = {
  ...{
    ß: 'ss',
    æ: 'ae',
    œ: 'oe',
    ø: 'o',
    ł: 'l',
    đ: 'd',
    ð: 'd',
    þ: 'th',
    ı: 'i',
    ħ: 'h',
    ŧ: 't',
    ŋ: 'n',
    ĸ: 'k',
    ə: 'e',
  },
  // Greek by ELOT 743.
  ...{ α: 'a', β: 'v', γ: 'g', δ: 'd', ε: 'e', ζ: 'z', η: 'i', θ: 'th', ι: 'i', κ: 'k', λ: 'l', μ: 'm', ν: 'n' },
  ...{ ξ: 'x', ο: 'o', π: 'p', ρ: 'r', σ: 's', ς: 's', τ: 't', υ: 'y', φ: 'f', χ: 'ch', ψ: 'ps', ω: 'o' },
  // Cyrillic by ICAO Doc 9303, as passports have it.
  ...{
    а: 'a',
    б: 'b',
    в: 'v',
    г: 'g',
    д: 'd',
    е: 'e',
    ж: 'zh',
    з: 'z',
    и: 'i',
    к: 'k',
    л: 'l',
    м: 'm',
    н: 'n',
    о: 'o',
  },
  ...{ п: 'p', р: 'r', с: 's', т: 't', у: 'u', ф: 'f', х: 'kh', ц: 'ts', ч: 'ch', ш: 'sh', щ: 'shch', ъ: 'ie' },
  ...{ ы: 'y', ь: '', э: 'e', ю: 'iu', я: 'ia', і: 'i', є: 'ie', ґ: 'g', ђ: 'dj', ј: 'j', љ: 'lj', њ: 'nj', ћ: 'c' },
  ...{ џ: 'dz', ѕ: 'dz' },
};

/** Symbols outside ASCII. */
const symbols: Record<string, string> = {
  ...{ '‘': "'", '’': "'", '‚': "'", '‛': "'", '´': "'", '“': '"', '”': '"', '„': '"', '«': '"', '»': '"' },
  ...{ '‐': '-', '‑': '-', '‒': '-', '–': '-', '—': '-', '―': '-', '−': '-', '⁄': '/', '×': 'x', '·': '.', '•': '.' },
  ...{ '€': 'EUR', '£': 'GBP', '¥': 'JPY', '©': '(c)', '®': '(r)', '¿': '?', '¡': '.' },
};

/** ASCII symbols that no SEPA text has. */
const sepa_symbols: Record<string, string> = {
  ...{ '&': '+', _: '-', '~': '-', '`': "'", '"': "'", '[': '(', '{': '(', ']': ')', '}': ')', '\\': '/', '|': '/' },
  ';': ',',
};

/** Texts that need no conversion, as most do not. */
const in_order = /^[A-Za-z0-9/\-?:().,'+]+(?: [A-Za-z0-9/\-?:().,'+]+)*$/;

/**
 * The text in the Latin characters of SEPA (`a-z A-Z 0-9 / - ? : ( ) . , ' +` and space), by EPC217-08, in one line and cut to a number of
 * characters. `Łukasz Groß & Søn` is `Lukasz Gross + Son`; an emoji, a `<` and a Chinese character are a full stop each. Empty if nothing
 * of it is left, as with control characters alone.
 */
export function sepaText(text: string, most: number): string {
  if (in_order.test(text)) return text.slice(0, most).trim();
  const converted = latin(text, '.').replace(/[^A-Za-z0-9/\-?:().,'+ ]/g, (symbol) => sepa_symbols[symbol] ?? '.');
  return converted.replace(/ +/g, ' ').trim().slice(0, most).trim();
}

/**
 * The text in printable ASCII: Latin, Greek and Cyrillic letters are transliterated, white space and control characters become a
 * space, joiners and variation selectors go, and each other character becomes `unknown`.
 */
export function latin(text: string, unknown: string): string {
  const characters = [...text.normalize('NFC').replace(/[οΟ][υύΥΎ]/g, greekOu)];
  return characters.map((character, at) => asciiOf(character, characters[at + 1], unknown)).join('');
}

/** Greek ου is one sound, which ELOT 743 writes `ou`. */
const greekOu = ([first, second]: string): string =>
  (first === 'Ο' ? 'O' : 'o') + (second === 'Υ' || second === 'Ύ' ? 'U' : 'u');

function asciiOf(character: string, next: string | undefined, unknown: string): string {
  if (/^[\s\p{Cc}\p{Z}]$/u.test(character)) return ' ';
  const parts = [...(symbols[character] ?? character.normalize('NFKD').replace(/[\p{M}\p{Cf}]/gu, ''))];
  const converted = parts.map((part) => asciiLetter(part, next));
  return converted.includes(undefined) ? unknown : converted.join('');
}

/** `Ш` is `Sh`, and `SH` before another capital. */
function asciiLetter(part: string, next: string | undefined): string | undefined {
  if (/^[\x20-\x7e]$/.test(part)) return part;
  const lower = part.toLowerCase();
  const letters = symbols[part] ?? latin_letters[lower];
  if (letters === undefined || part === lower) return letters;
  return next !== undefined && /^\p{Lu}$/u.test(next) ? letters.toUpperCase() : letters.replace(/^./, capital);
}

const capital = (letter: string): string => letter.toUpperCase();
