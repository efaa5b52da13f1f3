import { z } from 'zod';

/** Optional fields of which nothing is never taken for absent: a null that was to be an amount would refund the whole sale, a blank id would prove no payment. */
export const never_absent = z.registry();

/**
 * A body that creates or does something, without the fields that hold nothing: null or a blank text, where the field is optional and cannot hold
 * that. Clients send these for what they have not got.
 */
export function withoutAbsent(schema: z.ZodType, body: unknown): unknown {
  if (body === null || typeof body !== 'object') return body;
  const inner = unwrapped(schema);
  if (Array.isArray(body))
    return inner instanceof z.ZodArray ? body.map((item) => withoutAbsent(inner.element as z.ZodType, item)) : body;
  if (!(inner instanceof z.ZodObject)) return body;
  const shape = inner.shape as Record<string, z.ZodType>;
  return Object.fromEntries(
    Object.entries(body).flatMap(([name, value]) => {
      const field = Object.hasOwn(shape, name) ? shape[name] : undefined;
      if (!field) return [[name, value]];
      return isAbsent(name, field, value) ? [] : [[name, withoutAbsent(field, value)]];
    }),
  );
}

/** No id is blank, also where any text would be looked up. */
const isAbsent = (name: string, field: z.ZodType, value: unknown): boolean =>
  (value === null || (typeof value === 'string' && value.trim() === '')) &&
  !never_absent.has(field) &&
  field.safeParse(undefined).success &&
  ((value !== null && name.endsWith('_id')) || !field.safeParse(value).success);

/** Returns the inner schema of an optional field, or of one with a default. */
function unwrapped(schema: z.ZodType): z.ZodType {
  const { innerType } = schema.def as { innerType?: z.ZodType };
  return innerType ? unwrapped(innerType) : schema;
}
