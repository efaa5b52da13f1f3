/** Reads the results of the inbox's own server about the sender of a mail (RFC 8601). */
import { getDomain } from 'tldts';
import { authservNames, isOneOf, type OwnServer } from './authserv.ts';
import { addressesIn, type Message } from './message.ts';

/** `pass`, `fail`, `softfail`, `none`, `temperror`, … in lower case; null where the server does not say. */
type Result = string | null;

export interface Authentication {
  dmarc: Result;
  spf: Result;
  dkim: Result;
  /** It passed for the domain of From, or for one of the same organization (as DMARC's relaxed alignment). */
  spf_aligned: boolean;
  dkim_aligned: boolean;
  /** The own server is known to write them. Else a sender can have written them: they count against a mail, and prove nothing. */
  is_known: boolean;
}

/** One result: `spf=pass smtp.mailfrom=ada@shop.example`. */
interface Found {
  method: string;
  result: string;
  /** Its properties, `header.d` and the like, in lower case. */
  properties: Map<string, string>;
}

const longest_field = 10_000;
const most_fields = 20;

/**
 * Reads the fields that the inbox's own server wrote: the topmost ones, as long as the authserv-id is that of the own server. Whatever stands below
 * one of another server came with the mail, and anybody can have written it, as they can a field in the own server's name: of each method the
 * topmost field counts.
 */
export function readAuthentication(message: Message, own: OwnServer): Authentication {
  const { names, is_known } = authservNames(own);
  const from = domainOfFrom(message);
  const found: Found[] = [];
  for (const value of message.fields.all('authentication-results').slice(0, most_fields)) {
    const [first = '', ...results] = partsOf(value.slice(0, longest_field));
    const is_unnamed = first.includes('=');
    if (!isOneOf(is_unnamed ? '' : (first.split(/\s/, 1)[0] as string), names)) break;
    const known = new Set(found.map(({ method }) => method));
    const given = (is_unnamed ? [first, ...results] : results).flatMap(resultIn);
    found.push(...given.filter(({ method }) => !known.has(method)));
  }
  return { ...resultOf(found, from), is_known };
}

/** An aligned pass: whoever wrote the mail may use the domain of From. */
export const isAuthentic = ({ dmarc, spf, dkim, spf_aligned, dkim_aligned, is_known }: Authentication): boolean =>
  is_known && dmarc !== 'fail' && (spf_aligned || dkim_aligned || (dmarc === 'pass' && spf === null && dkim === null));

/** The own server says that it does not come from whom it names. Most forwarded mail fails SPF and keeps its signature. */
export const isForged = ({ dmarc, spf, dkim }: Authentication): boolean =>
  dmarc === 'fail' || (dmarc !== 'pass' && spf === 'fail' && dkim !== 'pass');

function resultOf(found: Found[], from: string | null): Omit<Authentication, 'is_known'> {
  const of = (method: string) => found.filter((one) => one.method === method);
  const spf = of('spf');
  const dkim = of('dkim');
  const aligned = (one: Found) => one.result === 'pass' && from !== null && organizationOf(domainIn(one)) === from;
  return {
    dmarc: worst(of('dmarc').filter((one) => isOf(one, from))),
    spf: worst(spf),
    dkim: dkim.some(({ result }) => result === 'pass') ? 'pass' : worst(dkim),
    spf_aligned: spf.length > 0 && spf.every(aligned),
    dkim_aligned: dkim.some(aligned),
  };
}

/** A result of DMARC is about the domain of From; one that names another domain says nothing. */
const isOf = ({ result, properties }: Found, from: string | null): boolean => {
  const about = properties.get('header.from');
  if (result !== 'pass') return true;
  return from !== null && (about === undefined || organizationOf(about) === from);
};

/** Two that disagree: whatever is no pass. */
const worst = (found: Found[]): Result =>
  (found.find(({ result }) => result === 'fail') ?? found.find(({ result }) => result !== 'pass') ?? found[0])
    ?.result ?? null;

/** The domain that a result is about. A report of a server has no envelope sender: SPF then asks about the name it greets with. */
function domainIn({ method, properties }: Found): string {
  const names = method === 'dkim' ? ['header.d', 'header.i'] : ['smtp.mailfrom', 'smtp.mail', 'smtp.helo'];
  const value = names.map((name) => properties.get(name)).find((one) => one !== undefined && !/^(?:<>)?$/.test(one));
  return (value ?? '').replace(/[<>]/g, '').replace(/^.*@/, '');
}

/** The organization of From; null where it names nobody, or several. */
function domainOfFrom({ fields }: Message): string | null {
  const values = fields.all('from');
  const [sender, ...others] = values.flatMap(addressesIn);
  if (!sender || others.length > 0 || values.length > 1) return null;
  return organizationOf(sender.address.slice(sender.address.lastIndexOf('@') + 1));
}

const organizationOf = (domain: string): string => getDomain(domain, { allowPrivateDomains: true }) ?? domain;

/** `method=result`, then properties; undefined for `none` and whatever is no result. */
function resultIn(part: string): Found[] {
  const [head = '', ...rest] = part.replace(/\s+/g, ' ').replace(/ ?= ?/g, '=').split(' ');
  const [name = '', result = ''] = head.toLowerCase().split('=');
  const [method = ''] = name.split('/');
  if (method === '' || result === '') return [];
  const pairs = rest.flatMap((pair): [string, string][] => {
    const at = pair.indexOf('=');
    return at > 0 ? [[pair.slice(0, at).toLowerCase(), pair.slice(at + 1).toLowerCase()]] : [];
  });
  return [{ method, result, properties: new Map(pairs) }];
}

/** The field between its semicolons, without comments and quotes: both may hold whatever a sender wrote. */
function partsOf(value: string): string[] {
  const parts = [''];
  let depth = 0;
  let is_quoted = false;
  for (let at = 0; at < value.length; at++) {
    let sign = value[at] as string;
    const is_escaped = sign === '\\' && (is_quoted || depth > 0);
    if (is_escaped) sign = value[++at] ?? '';
    else if (sign === '"' && depth === 0) {
      is_quoted = !is_quoted;
      continue;
    } else if (!is_quoted && sign === '(') depth += 1;
    else if (!is_quoted && sign === ')' && depth > 0) {
      depth -= 1;
      continue;
    } else if (!is_quoted && depth === 0 && sign === ';') {
      parts.push('');
      continue;
    }
    // A blank or a sign of equality within quotes begins no property.
    if (depth === 0) parts[parts.length - 1] += is_quoted ? sign.replace(/[\s=;]/, '_') : sign;
  }
  return parts.map((part) => part.trim());
}
