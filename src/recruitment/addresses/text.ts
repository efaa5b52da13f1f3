/** Addresses in running text, also as people write them against machines. */
import { parseAddress } from './address.ts';

export interface Written {
  email: string;
  /** Not as it is: `jane [at] example dot com`. */
  is_obfuscated: boolean;
}

const at_words =
  'at|ät|arroba|arobase|arobas|chiocciola|kukac|собака|snabel-?a|kringel|małpa|malpa|apenstaartje|zavinac|zavináč|klammeraffe|アット(?:マーク)?|@';
const dot_words = 'dot|punkt|point|punto|ponto|kropka|piste|prick|tecka|tečka|nokta|точка|ドット|d0t|\\.';
const open = '[\\[({<«_*"]';
const close = '[\\])}>»_*"]';
const bracketed_at = new RegExp(`\\s{0,3}${open}{1,2}\\s{0,2}(?:${at_words})\\s{0,2}${close}{1,2}\\s{0,3}`, 'giu');
const bracketed_dot = new RegExp(`\\s{0,3}${open}{1,2}\\s{0,2}(?:${dot_words})\\s{0,2}${close}{1,2}\\s{0,3}`, 'giu');
/** Both as words, since "meet us at example.com" is no address. */
const spelled = new RegExp(
  `([a-z0-9][\\w.+-]{0,63})\\s{1,3}(?:${at_words})\\s{1,3}([\\p{L}\\p{N}-]{1,63}(?:\\s{1,3}(?:${dot_words})\\s{1,3}[\\p{L}\\p{N}-]{1,63}){1,4})(?![\\p{L}\\p{N}-])`,
  'giu',
);
const spelled_dot = new RegExp(`\\s{1,3}(?:${dot_words})\\s{1,3}`, 'giu');
/** After "Email:" it is an address all the same. */
const announced =
  /(?:e-?mail|mail|courriel|correo|kontakt|contact|почта)\s{0,2}[:：]\s{0,3}([a-z0-9][\w.+-]{0,63})\s{1,3}(?:at|@|\(a\))\s{1,3}([\p{L}\p{N}.-]{3,100})/giu;
const tight_a = /(?<=[a-z0-9])\s?[[(](?:a|ä)[\])]\s?(?=[\p{L}\p{N}-]{1,63}\.[\p{L}]{2,24})/giu;
/** `jane @ example.com`. */
const spaced =
  /(?<![@a-z0-9])([a-z0-9][\w.+-]{0,63})(?:\s{1,2}@\s{0,2}|@\s{1,2})(?=[\p{L}\p{N}-]{1,63}\.[\p{L}]{2,24})/giu;
/** Words that stand before " at " in a sentence and are no names. */
const no_names = new Set(
  'a all and are available be but find follow for free go here home in is it join just like live look me meet more new now on only online open or order people see shop sold stay store that the them there this us visit was we while work you'.split(
    ' ',
  ),
);
/** 全角: what Japanese pages write. */
const wide = /[＠☆★◎●]/g;

const local_before = /(?<![\p{L}\p{N}])[a-z0-9][a-z0-9._%+'-]{0,63}$/iu;
const domain_after = /^(?:[\p{L}\p{N}](?:[\p{L}\p{N}-]{0,61}[\p{L}\p{N}])?\.){1,8}(?:xn--[a-z0-9-]{2,59}|\p{L}{2,24})/u;

/** No page of a person has so many. */
const most_checked = 5_000;

/** All addresses of a text, in order, each once. Time is linear in its length. */
export function addressesInText(text: string): Written[] {
  const plain = plainAddresses(text);
  const known = new Set(plain);
  const decoded = text
    .replace(wide, '@')
    .replace(bracketed_at, '@')
    .replace(bracketed_dot, '.')
    .replace(tight_a, '@')
    .replace(announced, (_all, local, domain) => ` ${local}@${domain} `)
    .replace(spaced, (all, local) => (no_names.has(local.toLowerCase()) ? all : ` ${local}@`))
    .replace(spelled, (all, local, domain) =>
      no_names.has(local.toLowerCase()) ? all : ` ${local}@${domain.replace(spelled_dot, '.')} `,
    );
  const hidden = plainAddresses(decoded).filter((email) => !known.has(email));
  return [
    ...plain.map((email) => ({ email, is_obfuscated: false })),
    ...hidden.map((email) => ({ email, is_obfuscated: true })),
  ];
}

function plainAddresses(text: string): string[] {
  const found = new Set<string>();
  let checked = 0;
  for (let at = text.indexOf('@'); at !== -1 && checked < most_checked; at = text.indexOf('@', at + 1)) {
    checked += 1;
    const local = local_before.exec(text.slice(Math.max(0, at - 64), at))?.[0];
    const domain = domain_after.exec(text.slice(at + 1, at + 256))?.[0];
    if (!local || !domain || isName(text, at - local.length, at + 1 + domain.length)) continue;
    const email = addressOf(withoutPrefix(local), domain);
    if (email) found.add(email);
  }
  return [...found];
}

/**
 * Text before an address that makes it an account, a user of a URL or a package: `@mia@host`, `!group@host`, `//user:key@host`,
 * `@scope/name@host`, `sip:mia@host`.
 */
const names_before =
  /[@!]$|\/\/[^\s/?#<>"']{0,100}$|@[\w.-]{1,60}\/$|\b(?:acct|xmpp|jabber|jid|sips?|ssh|mastodon|fediverse|matrix)\s?:\s?$/i;
/** `git@host:owner/name`. */
const path_after = /^:[\w~.-]{1,60}\//;

const isName = (text: string, start: number, end: number): boolean =>
  names_before.test(text.slice(Math.max(0, start - 120), start)) || path_after.test(text.slice(end, end + 64));

/** Removes escapes that JSON in a page leaves before an address. */
function withoutPrefix(local: string): string {
  return local.replace(/^(?:u003[ce]|x3[ce])/i, '').replace(/(?<!\.)\.+$/, '');
}

/** Words that follow without a space begin with a capital: `jane@example.comPhone`. */
function addressOf(local: string, domain: string): string | undefined {
  const address = parseAddress(`${local}@${domain}`);
  if (address !== undefined) return address;
  const shorter = /^(.*\.\p{Ll}{2,})\p{Lu}\p{L}*$/u.exec(domain)?.[1];
  return shorter === undefined ? undefined : parseAddress(`${local}@${shorter}`);
}
