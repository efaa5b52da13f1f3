/**
 * Details: what a visitor, a browser, a proxy or a shop puts into a fact, and what decides neither money nor identity. A fact is never refused
 * for one: what cannot be used is shortened, corrected or left out, and the reply says so under `warnings`.
 */
import { z } from 'zod';
import { customerEmail, metadata, visitorAddress, visitorCountry } from './fields.ts';
import { addressIn } from './texts/address_in.ts';
import { bareAddress } from './texts/bare_address.ts';
import { pathOfUnstorable, storable, storableValue } from './texts/stored_text.ts';

export interface Detail {
  /** The values that are stored unchanged. It takes null where the field is always there. */
  schema: z.ZodType;
  /** Corrects any other value, which is validated once more. */
  correct: (given: unknown) => unknown;
  /** The corrected value means the same, so that the reply has no warning. */
  says_the_same?: true;
  /** The reason in the warning about a value that is left out: `is no …`. */
  fault: string;
}

/** By the path of the field in the body: `customer.name`. */
export type Details = Readonly<Record<string, Detail>>;

const ofText = (correct: (given: string) => string | undefined) => (given: unknown) =>
  typeof given === 'string' ? correct(given) : undefined;

/** The first characters of a text: one is up to two units long. */
const firstOf = (text: string, most: number): string => [...text.slice(0, 2 * most)].slice(0, most).join('');

/** A text that describes, of at most so many characters. */
export const textDetail = (most: number, schema: z.ZodType = z.string().max(most)): Detail => ({
  schema,
  correct: ofText((given) => storable(firstOf(given, most))),
  fault: 'is no text',
});

const longest_url = 2048;

/** A page: what is beyond the longest URL is cut off. Null where there is none. */
export const urlDetail = (schema: z.ZodType): Detail => ({
  schema,
  correct: ofText((given) => (URL.parse(given)?.href ?? '').slice(0, longest_url).replace(/%.?$/, '')),
  fault: 'is not an http or https URL',
});

const trimmed = { correct: ofText((given) => given.trim()), says_the_same: true } as const;

export const details = {
  country: { schema: visitorCountry, ...trimmed, fault: 'is not a country code of two characters' },
  ip: {
    schema: visitorAddress,
    correct: ofText(bareAddress),
    says_the_same: true,
    fault: 'is not an IPv4 or IPv6 address',
  },
  email: { schema: customerEmail, correct: ofText(addressIn), says_the_same: true, fault: 'is not an email address' },
  metadata: {
    schema: metadata,
    correct: storableValue,
    fault: 'is not an object of at most 50 keys and 16 KiB with exact numbers',
  },
} as const satisfies Record<string, Detail>;

export const DetailWarning = z.object({
  code: z
    .enum(['detail_changed', 'detail_left_out'])
    .describe('`detail_changed`: a field was shortened or corrected. `detail_left_out`: it could not be used.'),
  message: z.string().describe('The warning in words.'),
  param: z.string().describe('The field.'),
});
export type DetailWarning = z.infer<typeof DetailWarning>;

/** The reply of an operation that has details. */
export const withWarnings = <Shape extends z.ZodRawShape>(
  record: z.ZodObject<Shape>,
  id: string,
  description: string,
) =>
  z
    .object({
      ...record.shape,
      warnings: z
        .array(DetailWarning)
        .optional()
        .describe('Which details were changed or left out. Present only if there are any.'),
    })
    .meta({ id, description });

/** The reply, which says what became of the details of the request. */
export const withCorrections = (result: unknown, corrections: DetailWarning[]): unknown =>
  corrections.length === 0
    ? result
    : { ...(result as object), warnings: [...((result as { warnings?: object[] }).warnings ?? []), ...corrections] };

/** Mends the details of a body in place. @returns what the reply says of that */
export const correctDetails = (body: unknown, details: Details): DetailWarning[] =>
  Object.entries(details).flatMap(([param, detail]) => mendField(body, param.split('.'), { ...detail, param }) ?? []);

function mendField(
  body: unknown,
  [name = '', ...inner]: string[],
  detail: Detail & { param: string },
): DetailWarning | undefined {
  if (body === null || typeof body !== 'object' || !Object.hasOwn(body, name)) return undefined;
  const holder = body as Record<string, unknown>;
  const given = holder[name];
  if (inner.length > 0) return mendField(given, inner, detail);
  const { schema, fault, param, says_the_same } = detail;
  if (!pathOfUnstorable(given) && schema.safeParse(given).success) return undefined;
  const corrected = correctedOf(given, detail);
  if (corrected !== undefined) {
    holder[name] = corrected;
    return says_the_same ? undefined : { code: 'detail_changed', param, message: changedText(param) };
  }
  if (schema.safeParse(null).success) holder[name] = null;
  else delete holder[name];
  if (given === null || given === '') return undefined;
  return { code: 'detail_left_out', param, message: `'${param}' ${fault}, and was left out.` };
}

const changedText = (param: string): string =>
  `'${param}' was shortened, or had characters that cannot be stored, and was changed.`;

/** @returns undefined where nothing of it can be used */
function correctedOf(given: unknown, { schema, correct }: Detail): unknown {
  const corrected = correct(given) ?? undefined;
  return corrected !== undefined && !pathOfUnstorable(corrected) && schema.safeParse(corrected).success
    ? corrected
    : undefined;
}
