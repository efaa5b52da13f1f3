import { isAscii } from 'node:buffer';
import { domainToASCII } from 'node:url';
import { z } from 'zod';
import { databaseTime } from './clock.ts';
import { Problem } from './problem.ts';
import { mixesScripts } from './texts/look_alike.ts';

/** The kinds of field that records share. */
export const id = (prefix: string) => z.string().meta({ description: `\`${prefix}_…\``, examples: [sampleId(prefix)] });
/** "Sample rows use the prefix `sample_` in front of the normal prefix." */
export const sampleId = (prefix: string): string => `sample_${prefix}_01kap3b6n8f2v9w4x7y0z1a2b3`;
export const objectName = <Name extends string>(name: Name) => z.literal(name).describe('The type of the object.');
export const timestamp = z.iso.datetime().describe('ISO 8601, UTC.');
/** Fractions of a second included. */
const most_time_characters = 64;
/** Never parses a long text, which takes Node tenths of a second: checks run also after one that failed. */
const timeOf = (text: string): Date => new Date(text.length > most_time_characters ? Number.NaN : text);
/** A time as callers send it, with any offset, kept in UTC: one that Postgres can store, and that stays so when a few decades are added. */
export const timestampInput = z.iso
  .datetime({ offset: true, error: 'must be an ISO 8601 time with a time zone, such as 2026-01-31T12:00:00Z' })
  .max(most_time_characters)
  .refine((text) => isStorableYear(timeOf(text).getUTCFullYear()), 'must be between the years 1 and 9000')
  .overwrite((text) => (Number.isNaN(timeOf(text).getTime()) ? text : timeOf(text).toISOString()));
/** A time of what has happened: from the year 2000 to a day from now, because clocks differ. */
export const pastTimestamp = timestampInput.refine(
  (text) => timeOf(text).getTime() >= Date.UTC(2000, 0, 1) && timeOf(text).getTime() <= databaseTime() + 86_400_000,
  'must be between 2000-01-01 and a day from now',
);
export const text = z.string();
/** No one sees them. */
const unseen = /\p{Default_Ignorable_Code_Point}/gu;
/** An id that others gave, to look one up: what nobody sees, and white space at its ends, is no part of it. */
export const knownExternalId = text.overwrite((given) => given.replaceAll(unseen, '').trim());
/** The same of one that is kept. */
export const externalId = knownExternalId.min(1).max(255);
/** Returns the meaning of each value, for a description. The meanings are clauses without a full stop. */
export const meaningsOf = (meanings: Readonly<Record<string, string>>): string =>
  Object.entries(meanings)
    .map(([value, meaning]) => `\`${value}\`: ${meaning}.`)
    .join(' ');
/** An enumeration whose description lists what each value means. */
export const documentedEnum = <Value extends string>(meanings: Readonly<Record<Value, string>>) =>
  enumOf(meanings).describe(meaningsOf(meanings));
/** The same without a description. */
export const enumOf = <Value extends string>(meanings: Readonly<Record<Value, string>>) =>
  z.enum(Object.keys(meanings) as [Value, ...Value[]]);
/** A text that shows something: not spaces alone. */
export const notBlank = (most: number) => text.min(1).max(most).regex(/\S/, 'must not be blank');
/** A name, which may stand in a header of an email. */
export const oneLine = (most: number) =>
  text
    .min(1)
    .max(most)
    .regex(/^[^\S\p{Cc}]*[^\s\p{Cc}][^\p{Cc}]*$/u, 'must not be blank or contain line breaks or control characters');
const url_error = 'must be an http or https URL';
/**
 * Kept as it was parsed, so that what is stored is what was checked. The most characters bound both: what is sent, as the description says, and
 * what is kept, where a sign can become nine (`%C3%BC`).
 */
export const visitedUrl = z
  .string()
  .max(2048)
  .check(z.url({ protocol: /^https?$/, normalize: true, error: url_error }))
  .max(2048);
/** `https://acme.example.com@evil.example/` leads to the second host, and shows the first. */
const hasNoUser = (address: string): boolean => {
  const { username, password } = URL.parse(address) ?? { username: '', password: '' };
  return username === '' && password === '';
};
const user_error = 'must not contain a user name or a password: remove the part before `@`';
/** The same of a page that people are sent to. */
export const url = visitedUrl.refine(hasNoUser, user_error);
/** Kept as it was sent, for a page whose URL may be signed: parsing would write some signs in another way. */
export const urlAsSent = z
  .url({ protocol: /^https?$/, error: url_error })
  .max(2048)
  .refine((text) => !/\p{Cc}/u.test(text), 'must not contain control characters')
  .refine(hasNoUser, user_error);
/** A URL as `url` keeps it; any other text unchanged. */
export const asParsed = (text: string): string => URL.parse(text)?.href ?? text;
/** A host name below a top-level domain, in lower case; of other letters than ASCII in its ASCII form (punycode). */
export const domain = z
  .string()
  .trim()
  .toLowerCase()
  .overwrite(asAsciiDomain)
  .regex(/^([a-z0-9]([a-z0-9-]*[a-z0-9])?\.)+[a-z][a-z0-9-]*[a-z0-9]$/, 'must be a domain, such as example.com')
  .max(253);
export const language = z
  .string()
  .regex(/^[A-Za-z]{2}$/, 'must be 2 letters, such as de')
  .toLowerCase()
  .describe('ISO 639-1.');
export const country = z
  .string()
  .regex(/^[A-Za-z]{2}$/, 'must be 2 letters, such as DE')
  .transform((code) => code.toUpperCase())
  .describe('ISO 3166-1 alpha-2.');
/** The country of a visitor, or a proxy's code in its place, such as `T1` of Tor. */
export const visitorCountry = z
  .string()
  .regex(/^[A-Za-z][A-Za-z0-9]$/, 'must be 2 characters, such as DE')
  .transform((code) => code.toUpperCase())
  .describe('ISO 3166-1 alpha-2, or what your proxy says instead, such as `T1` (Tor).');
export const visitorAddress = z.union([z.ipv4(), z.ipv6()], 'must be an IPv4 or IPv6 address, as 203.0.113.7');

/**
 * The local part is a dot-atom of RFC 5321, with the letters of all scripts that RFC 6531 adds; nobody needs one in quotation marks. A domain
 * of other letters than ASCII is kept in its ASCII form (punycode), however it was sent.
 */
const dot_atom = String.raw`[\p{L}\p{M}\p{N}!#$%&'*+\/=?^_\x60{|}~\-]+`;
const domain_label = String.raw`[\p{L}\p{N}](?:[\p{L}\p{M}\p{N}\-]{0,61}[\p{L}\p{M}\p{N}])?`;
const top_label = String.raw`\p{L}[\p{L}\p{M}\p{N}\-]{0,61}[\p{L}\p{M}\p{N}]`;
const address = new RegExp(`^(?=[^@]{1,64}@)${dot_atom}(?:\\.${dot_atom})*@(?:${domain_label}\\.)+${top_label}$`, 'u');
const email_error = 'must be an email address, such as ada@example.com';
/** The 254 characters of RFC 5321 bound both what is sent and what is kept. */
export const email = z
  .email({ pattern: address, error: email_error })
  .max(254)
  .overwrite((text) => withAsciiDomain(text.normalize('NFKC')))
  .refine((text) => address.test(text), email_error)
  .refine((text) => isAscii(Buffer.from(text.slice(text.lastIndexOf('@')))), email_error)
  .refine(
    (text) => !mixesScripts(text.slice(0, text.lastIndexOf('@'))),
    'must not mix letters of scripts that look alike',
  )
  .max(254);

/**
 * The address of somebody's customer, kept as the shop has it: by it, a customer is known. Some carriers gave out addresses that no standard allows,
 * such as `hana..sato.@example.ne.jp`. No mail is sent to it.
 */
export const customerEmail = z
  .email({ pattern: /^[^\s\p{Cc}]+@[^\s\p{Cc}@]+$/u, error: email_error })
  .max(254)
  .overwrite(withAsciiDomain)
  .max(254);

/** Returns the part after the last `@` of an email address. */
export const domainOf = (address: string): string => address.slice(address.lastIndexOf('@') + 1);

/** A domain that has no ASCII form is left as it is. */
export function withAsciiDomain(text: string): string {
  const domain = domainOf(text);
  if (isAscii(Buffer.from(domain))) return text;
  return text.slice(0, -domain.length) + (domainToASCII(domain) || domain);
}

function asAsciiDomain(text: string): string {
  return /^[\p{L}\p{M}\p{N}.-]+$/u.test(text) && !isAscii(Buffer.from(text)) ? domainToASCII(text) || text : text;
}

function isStorableYear(year: number): boolean {
  return year >= 1 && year <= 9000;
}

/**
 * A caller's own object, which is returned as it was sent: it holds no number that parsing changes. That it is JSON is known of a body, so
 * that nothing walks its values besides.
 */
export const freeObject = z
  .record(z.string(), z.unknown() as z.ZodType<z.core.util.JSONType>)
  .superRefine((value, context) => {
    const path = pathOfInexact(value);
    const message = 'the number is too large to be exact in JSON, so send it as a string';
    if (path) context.addIssue({ code: 'custom', message, path });
  });

/** The path in JSON of a number that is too large to be exact, or to be read at all. */
function pathOfInexact(value: unknown, path: string[] = []): string[] | undefined {
  if (typeof value === 'number') return Math.abs(value) > Number.MAX_SAFE_INTEGER ? path : undefined;
  if (value === null || typeof value !== 'object') return undefined;
  for (const [name, inner] of Object.entries(value)) {
    const inexact = pathOfInexact(inner, [...path, name]);
    if (inexact) return inexact;
  }
  return undefined;
}

/** "Caller's own key/value data, stored as given": at most 50 keys and 16 KiB. */
export const metadata = freeObject
  .refine((value) => Object.keys(value).length <= 50, 'may have at most 50 keys')
  .refine((value) => Buffer.byteLength(JSON.stringify(value)) <= 16_384, 'may have at most 16 KiB as JSON')
  .nullable()
  .describe('Your own key-value data: at most 50 keys, and 16 KiB as JSON. Replaces the stored metadata.');
export const storedMetadata = z
  .record(z.string(), z.json())
  .nullable()
  .describe('Your own key-value data, as you sent it.');

/** @throws Problem invalid_state_transition */
export function requireState(allowed: boolean, message: string): void {
  if (!allowed) throw new Problem('invalid_state_transition', message);
}

type WithDefaults<Shape extends z.ZodRawShape, Defaults> = {
  [Field in keyof Shape]: Field extends keyof Defaults ? z.ZodDefault<Shape[Field]> : z.ZodOptional<Shape[Field]>;
};

/** The fields of a create that may be left out: those with a default get it, and the description says so. */
export const withDefaults = <Shape extends z.ZodRawShape, Defaults extends object>(shape: Shape, defaults: Defaults) =>
  Object.fromEntries(
    Object.entries(shape).map(([field, schema]) => {
      const known = field in defaults;
      return [
        field,
        known ? (schema as z.ZodType).default(defaults[field as never]) : (schema as z.ZodType).optional(),
      ];
    }),
  ) as unknown as WithDefaults<Shape, Defaults>;
