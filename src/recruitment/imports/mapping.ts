import { Problem } from '../../core/values/problem.ts';

/** The fields that a column can be imported as, and the headers that mean them without a mapping. */
const headers = {
  url: ['url', 'website', 'website_url', 'site', 'link', 'profile_url'],
  key: ['key', 'handle', 'username', 'domain', 'channel_id'],
  channel: ['channel', 'platform'],
  name: ['name', 'title', 'full_name'],
  email: ['email', 'e_mail', 'mail', 'email_address'],
  country_code: ['country_code', 'country'],
  language_code: ['language_code', 'language', 'lang'],
  timezone: ['timezone', 'time_zone'],
  followers: ['followers', 'subscribers', 'follower_count', 'subscriber_count'],
  description: ['description', 'bio', 'about'],
} as const;
export type ImportField = keyof typeof headers | `custom.${string}`;

/** The field of each column; null: it is left out. */
export type Mapping = Record<string, string | null>;

const names = Object.keys(headers) as (keyof typeof headers)[];
const custom = /^custom\..{1,100}$/su;
export const field_list = `${names.join(', ')}, custom.<name>`;

/** The field that a header means by itself. */
export function fieldOfHeader(header: string): ImportField | undefined {
  if (custom.test(header)) return header as ImportField;
  const folded = header
    .trim()
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '_');
  return names.find((name) => (headers[name] as readonly string[]).includes(folded));
}

/**
 * The field of each column: as it was asked for, else as the header says.
 * @param columns of the header; of NDJSON the names of the first object, others may follow
 * @param is_closed whether there are no other columns
 * @throws Problem invalid_parameter
 */
export function mappingOf(columns: string[], asked: Mapping, is_closed: boolean): Mapping {
  refuseUnknownFields(asked);
  const twice = columns.find((column, nth) => columns.indexOf(column) !== nth);
  if (twice !== undefined) throw wrong('document', `The column '${twice}' occurs twice. Rename one of them.`);
  const absent = Object.keys(asked).find((column) => !columns.includes(column));
  if (is_closed && absent !== undefined) {
    throw wrong('mapping', `There is no column '${absent}'. The columns are: ${columns.join(', ')}.`);
  }
  const found = columns.map((column) => [column, fieldAsked(column, asked)] as const);
  const mapping = { ...asked, ...Object.fromEntries(found) };
  refuseTwoOfAField(mapping);
  if (!Object.values(mapping).some((field) => field === 'url' || field === 'key')) {
    throw wrong(
      'mapping',
      "No column is imported as 'url' or 'key', which identify a prospect. Map a column to one of them.",
    );
  }
  return mapping;
}

function fieldAsked(column: string, asked: Mapping): string | null {
  const field = Object.hasOwn(asked, column) ? asked[column] : fieldOfHeader(column);
  // In NDJSON, `custom` is the object of the fields whose names are the caller's own.
  if (field === undefined && column === 'custom') return 'custom';
  if (field === undefined) {
    throw wrong(
      'mapping',
      `The column '${column}' is not known. Map it to one of ${field_list}, or to null to leave it out.`,
    );
  }
  return field;
}

function refuseUnknownFields(asked: Mapping): void {
  for (const [column, field] of Object.entries(asked)) {
    if (field === null || names.includes(field as keyof typeof headers) || custom.test(field)) continue;
    throw wrong('mapping', `'${field}', which the column '${column}' is mapped to, is not one of ${field_list}.`);
  }
}

function refuseTwoOfAField(mapping: Mapping): void {
  const columns = new Map<string, string>();
  for (const [column, field] of Object.entries(mapping)) {
    if (field === null) continue;
    const first = columns.get(field);
    if (first !== undefined) {
      throw wrong(
        'mapping',
        `The columns '${first}' and '${column}' are both imported as '${field}'. Map one of them to null.`,
      );
    }
    columns.set(field, column);
  }
}

const wrong = (param: string, message: string): Problem => new Problem('invalid_parameter', message, { param });
