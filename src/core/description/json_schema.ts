import { z } from 'zod';

/** The part of JSON Schema that the description's schemas use. */
export interface Schema {
  $ref?: string;
  type?: string | string[];
  title?: string;
  description?: string;
  format?: string;
  pattern?: string;
  const?: unknown;
  enum?: unknown[];
  default?: unknown;
  examples?: unknown[];
  minimum?: number;
  maximum?: number;
  exclusiveMinimum?: number;
  minLength?: number;
  maxLength?: number;
  minItems?: number;
  maxItems?: number;
  items?: Schema;
  properties?: Record<string, Schema>;
  required?: string[];
  additionalProperties?: boolean | Schema;
  anyOf?: Schema[];
  oneOf?: Schema[];
  allOf?: Schema[];
  not?: Schema;
}

export type Schemas = Record<string, Schema>;

/** The types that a schema allows besides null. */
export const typesOf = ({ type = [] }: Schema): string[] => [type].flat().filter((name) => name !== 'null');

/** Follows a reference into `components/schemas`. */
export function resolve(schema: Schema, schemas: Schemas): Schema {
  if (!schema.$ref) return schema;
  const { $ref, ...besides } = schema;
  const target = schemas[nameOf($ref)];
  if (!target) throw new Error(`No schema behind ${$ref}.`);
  return { ...resolve(target, schemas), ...besides };
}

/** `Partner` of `#/components/schemas/Partner`. */
export const nameOf = ($ref: string): string => $ref.slice($ref.lastIndexOf('/') + 1);

/** Takes back what zod adds to a JSON Schema that means nothing to a reader, or more than is meant, and what it leaves out. */
export function override({
  zodSchema,
  jsonSchema,
}: {
  zodSchema: z.core.$ZodTypes;
  jsonSchema: z.core.JSONSchema.BaseSchema;
}) {
  // Times that callers send with a zone of theirs, and addresses, are narrower than their formats.
  const { format, offset } = zodSchema._zod.def as { format?: string; offset?: boolean };
  if (jsonSchema.format !== undefined && format !== 'email' && !offset) delete jsonSchema.pattern;
  delete jsonSchema.propertyNames;
  // A default that is said and not filled in, so that code knows what was sent: zod drops it where the schema also transforms.
  const { default: said } = (z.globalRegistry.get(zodSchema) ?? {}) as { default?: string | number };
  if (said !== undefined) jsonSchema.default = said;
  // The one recursive schema without a name is z.json(): any JSON.
  if (zodSchema._zod.def.type === 'lazy') {
    for (const key of Object.keys(jsonSchema)) if (key !== 'description' && key !== 'examples') delete jsonSchema[key];
  }
}

/** Replaces the libraries' schema of z.json(), a reference to a definition that they invent, with any JSON. */
export const anyJson = <T>(document: T): T =>
  JSON.parse(JSON.stringify(document), (key, value) => {
    if (key === '$defs') return undefined;
    return typeof value?.$ref === 'string' && /schema\d+$/.test(value.$ref) ? {} : value;
  });

/** Moves the description of a value to the field that may hold null in its place. */
export const saidOutside = <T>(document: T): T =>
  JSON.parse(JSON.stringify(document), (_, value) => {
    if (!Array.isArray(value?.anyOf) || value.description !== undefined) return value;
    const { description } = value.anyOf.find((branch: Schema) => branch.description !== undefined) ?? {};
    return description === undefined ? value : { ...value, description };
  });

/** Without the word that no further fields may come. */
export function opened<T>(schema: T): T {
  return JSON.parse(JSON.stringify(schema), (_, value) => {
    if (value?.additionalProperties !== false) return value;
    const { additionalProperties: __, ...rest } = value;
    return rest;
  });
}
