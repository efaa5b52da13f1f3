/** The addresses that a page shows its readers, whichever way it hides them from machines. */
import { type Place, walkHtml } from '../pages/html.ts';
import { jsonLdObjects, stringsOf } from '../pages/json_ld.ts';
import { isDecoy, parseAddress } from './address.ts';
import { addressesInText } from './text.ts';

/** The form in which an address was written. */
export type Manner = 'mailto' | 'json_ld' | 'text' | 'obfuscated' | 'cloudflare' | 'reversed' | 'script';

export interface FoundAddress {
  email: string;
  manner: Manner;
}

const most_addresses = 100;
const most_text_characters = 500_000;
const most_json_ld = 50;
/** An `@` or a whole address may be a picture. */
const most_alt_characters = 100;
const inline = new Set(
  'a abbr b bdi bdo big cite code em font i img ins kbd label mark q s samp small span strong sub sup tt u var wbr'.split(
    ' ',
  ),
);

/** Each address once, in order. Comments, what is not shown, and addresses that lead to nobody are left out. Never throws. */
export function findAddresses(html: string): FoundAddress[] {
  const finder = new Finder();
  walkHtml(html, finder);
  return finder.found();
}

class Finder {
  readonly #found = new Map<string, Manner>();
  readonly #visible: string[] = [];
  readonly #reversed: string[] = [];
  #characters = 0;
  #script = '';
  #json_ld = 0;

  open(name: string, attributes: Record<string, string>, { is_hidden }: Place): void {
    if (!inline.has(name)) this.#break();
    if (name === 'script') this.#script = attributes.type ?? 'text/javascript';
    if (is_hidden) return;
    const { href = '', action = '', content = '', alt = '', itemprop, 'data-cfemail': protected_text } = attributes;
    if (name === 'img' && alt.length <= most_alt_characters) this.#visible.push(alt);
    if (/^\s*javascript:/i.test(href)) this.#readMailtos(href);
    for (const key of ['data-email', 'data-mail']) this.#add(attributes[key] ?? '', 'script');
    this.#readAddress(href);
    this.#readAddress(action);
    if (itemprop === 'email') this.#add(content, 'json_ld');
    if (protected_text !== undefined) this.#add(decodeCloudflare(protected_text), 'cloudflare');
  }

  text(text: string, { element, is_hidden, is_reversed }: Place): void {
    if (element === 'script') this.#readScript(text);
    else if (!is_hidden && this.#characters < most_text_characters) {
      this.#characters += text.length;
      (is_reversed ? this.#reversed : this.#visible).push(text);
    }
  }

  close(name: string): void {
    if (!inline.has(name)) this.#break();
  }

  found(): FoundAddress[] {
    for (const { email, is_obfuscated } of addressesInText(
      this.#visible.join('').replace(/[\u200b-\u200d\u2060\u00ad\ufeff]/g, ''),
    )) {
      this.#add(email, is_obfuscated ? 'obfuscated' : 'text');
    }
    for (const line of this.#reversed.join('').split('\n')) {
      for (const { email } of addressesInText([...line].reverse().join(''))) this.#add(email, 'reversed');
    }
    return [...this.#found].map(([email, manner]) => ({ email, manner }));
  }

  #break(): void {
    for (const texts of [this.#visible, this.#reversed])
      if (texts.length > 0 && texts.at(-1) !== '\n') texts.push('\n');
  }

  #readAddress(href: string): void {
    const protected_text = /\/cdn-cgi\/l\/email-protection#([0-9a-f]+)/i.exec(href.slice(0, 2_048))?.[1];
    if (protected_text !== undefined) this.#add(decodeCloudflare(protected_text), 'cloudflare');
    if (!/^\s*mailto:/i.test(href)) return;
    const [addresses = ''] = href
      .slice(0, 2_048)
      .replace(/^\s*mailto:/i, '')
      .split('?');
    for (const part of decode(addresses).split(/[,;]/)) {
      const [written] = addressesInText(part);
      if (written) this.#add(written.email, written.is_obfuscated ? 'obfuscated' : 'mailto');
    }
  }

  #readScript(text: string): void {
    if (/ld\+json/i.test(this.#script)) {
      if (this.#json_ld++ >= most_json_ld) return;
      for (const object of jsonLdObjects(text)) {
        for (const email of stringsOf(object.email)) this.#add(email.replace(/^mailto:/i, ''), 'json_ld');
      }
      return;
    }
    this.#readMailtos(text);
  }

  #readMailtos(text: string): void {
    // 'mailto:' + 'jane' + '@' + 'example.com'. What scripts hold besides is anything.
    const joined = text.slice(0, most_text_characters).replace(/['"]\s{0,5}\+\s{0,5}['"]/g, '');
    for (const [, address = ''] of joined.matchAll(/mailto:([^'"\\?<>\s]{3,254})/gi)) {
      const [written] = addressesInText(decode(address));
      if (written) this.#add(written.email, 'script');
    }
  }

  #add(text: string, manner: Manner): void {
    const email = parseAddress(text.trim());
    if (email === undefined || isDecoy(email) || this.#found.size >= most_addresses) return;
    if (!this.#found.has(email)) this.#found.set(email, manner);
  }
}

/** The first byte is the key that the others are combined with. */
function decodeCloudflare(hex: string): string {
  const bytes = Buffer.from(hex.slice(0, 1_000), 'hex');
  return Buffer.from(bytes.subarray(1).map((byte) => byte ^ (bytes[0] as number))).toString('utf8');
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
