/** The dictionary of schema data, read from the comments of its views and columns: they are written once, in sql/live/data. */
import sql from 'sql-template-tag';
import { jsonText } from '../core/formats/json_text.ts';
import { type Database, run } from '../core/postgres/database.ts';

export interface Dictionary {
  schema: 'data';
  views: View[];
  functions: { name: string; doc: string }[];
}

export interface View {
  name: string;
  doc: string;
  columns: Column[];
}

interface Column {
  name: string;
  type: string;
  doc: string;
  /** Null unless the login sees personal data. */
  personal: boolean;
}

/** Reads the dictionary, in the order of names, and columns in their order. */
export async function readDictionary(database: Pick<Database, 'query'>): Promise<Dictionary> {
  const views = await run<View>(
    database,
    sql`
      select v.relname as name, obj_description(v.oid, 'pg_class') as doc,
        json_agg(
          json_build_object(
            'name', a.attname, 'type', format_type(a.atttypid, null), 'doc', col_description(v.oid, a.attnum),
            'personal', col_description(v.oid, a.attnum) like '%Personal:%'
          )
          order by a.attnum
        ) as columns
      from pg_class v
      join pg_attribute a on a.attrelid = v.oid and a.attnum > 0 and not a.attisdropped
      where v.relnamespace = 'data'::regnamespace and v.relkind = 'v'
      group by v.oid, v.relname
      order by v.relname`,
  );
  const functions = await run<{ name: string; doc: string }>(
    database,
    sql`
      select format('data.%I(%s)', f.proname, pg_get_function_identity_arguments(f.oid)) as name, obj_description(f.oid, 'pg_proc') as doc
      from pg_proc f
      where f.pronamespace = 'data'::regnamespace and has_function_privilege('rail_data_reader', f.oid, 'execute') and f.prosecdef
      order by 1`,
  );
  return { schema: 'data', views, functions };
}

export const formats = ['markdown', 'json', 'dbt'] as const;

/** The dictionary as text: Markdown for people, JSON, or the `sources.yml` of a dbt project. */
export function printDictionary(dictionary: Dictionary, format: (typeof formats)[number]): string {
  if (format === 'json') return jsonText(dictionary, 2);
  return format === 'dbt' ? dbtSources(dictionary) : markdown(dictionary);
}

const markdown = ({ views, functions }: Dictionary): string =>
  [
    '# Schema `data`',
    ...views.flatMap(({ name, doc, columns }) => [
      '',
      `## data.${name}`,
      '',
      doc,
      '',
      '| column | type | what it is |',
      '|---|---|---|',
      ...columns.map((column) => `| \`${column.name}\` | ${column.type} | ${column.doc.replaceAll('|', '\\|')} |`),
    ]),
    '',
    '## Functions',
    '',
    ...functions.map(({ name, doc }) => `- \`${name}\`: ${doc}`),
  ].join('\n');

/** A JSON string is one of YAML too. */
const quoted = (text: string): string => JSON.stringify(text);

const dbtSources = ({ views }: Dictionary): string =>
  [
    'version: 2',
    '',
    'sources:',
    '  - name: rail',
    '    schema: data',
    `    description: ${quoted('Rows of your organization in Rail.')}`,
    '    tables:',
    ...views.flatMap(({ name, doc, columns }) => [
      `      - name: ${quoted(name)}`,
      `        description: ${quoted(doc)}`,
      '        columns:',
      ...columns.flatMap((column) => [
        `          - name: ${quoted(column.name)}`,
        `            description: ${quoted(column.doc)}`,
        `            data_type: ${quoted(column.type)}`,
        ...(column.personal ? ['            meta: { personal: true }'] : []),
      ]),
    ]),
  ].join('\n');
