/** The fields of an operation's form. */
import type { z } from 'zod';
import type { Operation } from '../core/resource/operation.ts';
import { Problem } from '../core/values/problem.ts';
import { type Field, fieldsOf, jsonSchemaOf } from '../pages/schema_fields.ts';
import { every_detail } from '../program/partners/payout_method.ts';
import { credentialsSchema, rail_methods } from '../program/payouts/credentials/rail_method.ts';
import { billing } from '../program/processors/processors.ts';
import { providers } from '../recruitment/search_providers/providers.ts';
import { schemaOf } from './catalog.ts';

type Params = Record<string, string>;

/** The fields of an operation's body, and of its query where it is no GET. @param params of its path: the rail whose credentials are set */
export function formFields(operation: Operation, params: Params = {}): Field[] {
  // A preview answers a page of figures: the payout run has one that people read.
  const query = fieldsOf(schemaOf(operation, 'query')).filter(({ name }) => name !== 'preview');
  const body = bodyFields(operation, params);
  return [...query.filter(({ name }) => body.every((one) => one.name !== name)), ...body];
}

/** The fields of the body. One that is not described there is described as the record has it. */
export function bodyFields(operation: Operation, params: Params = {}): Field[] {
  if (operation.bulk_of) return bulkFields(operation.bulk_of);
  const described = schemaOf(operation, 'reply').properties ?? {};
  return fieldsOf(schemaOf(operation, 'body')).map((field) => {
    const known = knownIn(operation, field, params);
    return {
      ...field,
      description: field.description || described[field.name]?.description || '',
      ...(known ? { kind: 'group' as const, description: '', fields: known } : {}),
    };
  });
}

/** Maps whose names are known once it is known what they are of: the schema of their values. */
const known_maps: Record<string, (params: Params) => z.ZodObject | null | undefined> = {
  'rails.put credentials': ({ rail }) => rail_methods.filter((one) => one === rail).map(credentialsSchema)[0],
  'processors.put credentials': ({ processor }) => billing[processor as keyof typeof billing]?.credentials,
  'search_providers.put credentials': ({ name }) => providers[name as keyof typeof providers]?.credentials,
  'partners.put_payout_method details': () => every_detail,
};

function knownIn({ name }: Operation, field: Field, params: Params): Field[] | undefined {
  const schema = known_maps[`${name} ${field.name}`]?.(params);
  return schema ? fieldsOf(jsonSchemaOf(schema)) : undefined;
}

/** Records in bulk are rows, all of one program. */
function bulkFields(one: Operation): Field[] {
  const [programs, others] = [true, false].map((wanted) =>
    bodyFields(one).filter(({ name }) => (name === 'program_id') === wanted),
  ) as [Field[], Field[]];
  const rows = { name: 'records', label: 'Records', description: '', kind: 'rows', options: [] } as const;
  return [...programs, { ...rows, is_required: true, is_nullable: false, options: [], fields: others }];
}

/** The body of rows that were typed. */
export const bulkBody = ({ program_id, records }: Record<string, unknown>): object =>
  ((records ?? []) as object[]).map((record) => ({ program_id, ...record }));

/** A problem of one of several records, at its row. */
export function inRow({ code, message, details }: Problem): Problem {
  const { param = '' } = details;
  const name = /^\d/.test(param) ? `records.${param}` : param;
  return new Problem(code, message.replace(`'${param}'`, `'${name}'`), { ...details, param: name });
}
