/** Reads off the operations what the dashboard shows: lists, records, and what can be done to them. */
import type { Schema } from '../core/description/json_schema.ts';
import { tagTitle, titleOf } from '../core/description/title.ts';
import type { Operation } from '../core/resource/operation.ts';
import { jsonSchemaOf } from '../pages/schema_fields.ts';

export interface Catalog {
  operations: Map<string, Operation>;
  /** The noun of a record by the prefix of its id: `partners` of `part`. */
  tagOf(prefix: string): string | undefined;
  /** The next noun whose ids begin like this, such as scans after searches; undefined after the last. */
  tagAfter(prefix: string, tag: string): string | undefined;
}

/** The schema of each operation's input and reply, made when it is asked for first. */
const schemas = new WeakMap<object, Schema>();
export function schemaOf(operation: Operation, part: 'params' | 'query' | 'body' | 'reply'): Schema {
  const type = operation[part];
  const known = schemas.get(type);
  if (known) return known;
  const made = jsonSchemaOf(type);
  schemas.set(type, made);
  return made;
}

/** The prefixes are read off the schemas when the first page needs them: a process that serves none is spared the quarter of a second. */
export function catalogOf(operations: Operation[]): Catalog {
  let tags: Map<string, string[]> | undefined;
  const tagsOf = (prefix: string): string[] => {
    tags ??= tagsByPrefix(operations);
    return tags.get(prefix) ?? [];
  };
  return {
    operations: new Map(operations.map((one) => [one.name, one])),
    tagOf: (prefix) => tagsOf(prefix)[0],
    tagAfter(prefix, tag) {
      const all = tagsOf(prefix);
      return all.includes(tag) ? all[all.indexOf(tag) + 1] : undefined;
    },
  };
}

function tagsByPrefix(operations: Operation[]): Map<string, string[]> {
  const tags = new Map<string, string[]>();
  for (const operation of operations) {
    if (!operation.name.endsWith('.get') || paramsOf(operation).length !== 1) continue;
    const [example] = schemaOf(operation, 'reply').properties?.id?.examples ?? [];
    const prefix = prefixOf(String(example));
    if (prefix !== undefined) tags.set(prefix, [...(tags.get(prefix) ?? []), operation.tag]);
  }
  return tags;
}

/** `part` of `part_01k…`; undefined of what is no id. */
export const prefixOf = (id: string): string | undefined => /^(?:sample_)?([a-z_]+)_[0-9a-z]{26}$/.exec(id)?.[1];

/** The parts of a scope, such as the program and the brand, that an operation can be narrowed to. */
export function scopeFor(operation: Operation, scope: Record<string, unknown>): Record<string, string> {
  const { properties = {} } = schemaOf(operation, 'query');
  const known = Object.entries(scope).filter(([name, id]) => properties[name] && typeof id === 'string');
  return Object.fromEntries(known) as Record<string, string>;
}

/** The path parameters of an operation. */
export const paramsOf = ({ path }: Operation): string[] =>
  [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name as string);

/** `object` of the records of a list: `partner`. */
export const nounOfTag = ({ operations }: Catalog, tag: string): string | undefined => {
  const get = operations.get(`${tag}.get`);
  const noun = get && schemaOf(get, 'reply').properties?.object?.const;
  return typeof noun === 'string' ? noun : undefined;
};

const isBelow = (operation: Operation, get: Operation): boolean =>
  operation.path === get.path || operation.path.startsWith(`${get.path}/`);

/** The operations that change a record, by its `.get`. */
export const actionsOn = ({ operations }: Catalog, tag: string): Operation[] => {
  const get = operations.get(`${tag}.get`);
  return get
    ? [...operations.values()].filter(
        (one) => one.method !== 'GET' && paramsOf(one).length === paramsOf(get).length && isBelow(one, get),
      )
    : [];
};

/** The other views of a record: its balance, its explanation. */
export const viewsOf = ({ operations }: Catalog, tag: string): Operation[] => {
  const get = operations.get(`${tag}.get`);
  return get
    ? [...operations.values()].filter(
        (one) =>
          one.method === 'GET' && one !== get && paramsOf(one).length === paramsOf(get).length && isBelow(one, get),
      )
    : [];
};

/** Lists that can be narrowed to a record: `sales` of a partner. */
export const listsOf = (catalog: Catalog, tag: string): { operation: Operation; filter: string }[] => {
  const noun = nounOfTag(catalog, tag);
  if (noun === undefined) return [];
  const filter = `${noun}_id`;
  return [...catalog.operations.values()]
    .filter(
      (one) => one.name.endsWith('.list') && paramsOf(one).length === 0 && schemaOf(one, 'query').properties?.[filter],
    )
    .map((operation) => ({ operation, filter }));
};

/** The operations that make a new record of a list. */
export const createsOf = ({ operations }: Catalog, tag: string): Operation[] =>
  [...operations.values()].filter((one) => one.tag === tag && one.method === 'POST' && paramsOf(one).length === 0);

/** The short name of an operation, as a button has it: `Approve an application`. */
export function actionTitle(catalog: Catalog, operation: Operation): string {
  const root = operation.path.startsWith('/v1/') ? '/v1' : '/recruitment/v1';
  return titleOf(operation, root, nounOfTag(catalog, operation.tag) ?? operation.tag.replace(/s$/, ''));
}

export const listTitle = tagTitle;

/** Where a list or a view is. */
export const addressOf = (catalog: Catalog, { name, tag }: Operation): string =>
  name === `${tag}.list` && paramsOf(catalog.operations.get(name) as Operation).length === 0
    ? `/dashboard/${tag}`
    : `/dashboard/see/${name}`;
