/** The names of records that others point to: of those that there are few of, read at once. */
import { dayText, money, words } from '../pages/format.ts';
import { insteadOf, type Use } from '../pages/run.ts';
import { nounOfTag, paramsOf, prefixOf, schemaOf, scopeFor } from './catalog.ts';
import { mayDo } from './roles.ts';
import { isRecord, nameIn, type Record_ } from './values.ts';
import type { DashboardVisit } from './visit.ts';

/** The lists that have few records, by the prefix of their ids. */
const lists: Record<string, string> = {
  prg: 'programs',
  usr: 'users',
  key: 'api_keys',
  grp: 'groups',
  flw: 'rules',
  fbr: 'brands',
  fin: 'inboxes',
  whe: 'webhook_endpoints',
};

const most = 100;
/** So many records are read one by one: of more, those of the lists that have few are read at once. */
const most_alone = 8;

const titles = 'name email handle title code url subject event_type type'.split(' ');

/** The title of a record's page: its name, or what it is, with its amount or its day. */
export function titleOf(visit: DashboardVisit, tag: string, record: Record_): string {
  const name = titles.map((one) => record[one]).find((value) => typeof value === 'string' && value !== '');
  if (typeof name === 'string') return name;
  const noun = words(nounOfTag(visit.catalog, tag) ?? tag);
  const { amount_minor, currency, occurred_at, created_at } = record;
  const on = typeof occurred_at === 'string' ? ` on ${dayText(occurred_at, visit.reader)}` : '';
  if (typeof amount_minor === 'number' && typeof currency === 'string')
    return `${noun} of ${money(amount_minor, currency, visit.reader)}${on}`;
  const { prospect } = record;
  const of = isRecord(prospect) ? nameIn(prospect) : undefined;
  if (of !== undefined) return `${noun} with ${of}`;
  return typeof created_at === 'string' ? `${noun} of ${dayText(created_at, visit.reader)}` : noun;
}

/** Adds the records that ids stand for, where a list of few has them, so that they are shown by their names; else the noun leads to the record. @param fields those that are shown; all, where left out */
export async function withNames(
  visit: DashboardVisit,
  use: Use,
  rows: Record_[],
  program_id: string | undefined,
  fields?: string[],
): Promise<Record_[]> {
  const { catalog, role } = visit;
  const unnamed = (row: Record_) =>
    Object.entries(row).filter(
      (entry): entry is [string, string] =>
        entry[0].endsWith('_id') &&
        (fields?.includes(entry[0]) ?? true) &&
        typeof entry[1] === 'string' &&
        !isRecord(row[entry[0].slice(0, -'_id'.length)]),
    );
  const { known } = visit;
  const ids = new Set(rows.flatMap((row) => unnamed(row).map(([, id]) => id)));
  const open = [...ids].filter((id) => !known.has(id) && catalog.tagOf(prefixOf(id) ?? ''));
  if (open.length <= most_alone) for (const id of open) known.set(id, await readAlone(visit, use, id));
  else
    for (const prefix of new Set(open.map((id) => prefixOf(id) ?? ''))) {
      const list = catalog.operations.get(`${lists[prefix]}.list`);
      if (!list || !mayDo(role, list.scope)) continue;
      if (schemaOf(list, 'query').required?.includes('program_id') && program_id === undefined) continue;
      const { data } = await use(list.name, { query: { limit: most, ...scopeFor(list, { program_id }) } });
      for (const record of data as Record_[]) known.set(String(record.id), record);
    }
  return rows.map((row) => {
    const named = unnamed(row).flatMap(([name, id]) => {
      const tag = catalog.tagOf(prefixOf(id) ?? '');
      if (!tag) return [];
      const record = known.get(id);
      const known_as = record ? titleOf(visit, tag, record) : words(nounOfTag(catalog, tag) ?? tag);
      return [[name.slice(0, -'_id'.length), { ...record, name: known_as }]];
    });
    return { ...row, ...titled(visit, row), ...Object.fromEntries(named) };
  });
}

/** A record by its id; undefined of one that is gone, or that the role may not see. */
async function readAlone({ catalog, role }: DashboardVisit, use: Use, id: string): Promise<Record_ | undefined> {
  const get = catalog.operations.get(`${catalog.tagOf(prefixOf(id) ?? '')}.get`);
  const [param, ...more] = get ? paramsOf(get) : [];
  if (!get || param === undefined || more.length > 0 || !mayDo(role, get.scope)) return undefined;
  return use(get.name, { params: { [param]: id } }).catch(insteadOf(404, undefined));
}

/** The records that a row has beside its ids, with a name for those that have none: `Sale of $100.00`. */
function titled(visit: DashboardVisit, row: Record_): Record_ {
  const related = Object.entries(row).filter(
    (entry): entry is [string, Record_] => isRecord(entry[1]) && typeof row[`${entry[0]}_id`] === 'string',
  );
  return Object.fromEntries(
    related.map(([name, record]) => {
      const tag = visit.catalog.tagOf(prefixOf(String(record.id)) ?? '') ?? name;
      return [name, nameIn(record) === undefined ? { ...record, name: titleOf(visit, tag, record) } : record];
    }),
  );
}
