/**
 * Lists read what a view is made of in place of the view. A security barrier keeps functions in a condition from rows that the view leaves out; it
 * also keeps an index from giving rows in an order, and from finding those of a join: to show 20 sales, all of them would be read. Conditions of
 * GraphQL have no functions, and whose rows they find follows from the row-level security of the tables, which the role that reads is subject to.
 */
import 'postgraphile';
import 'postgraphile/graphile-build-pg';
import { sql } from 'postgraphile/pg-sql2';
import type { WithPgClient } from './pg_client.ts';

export async function readDefinitions(withPgClient: WithPgClient): Promise<GraphileConfig.Plugin> {
  const { rows } = await withPgClient(null, (client) => client.query({ text: definitions }));
  const by_view = new Map((rows as { view: string; definition: string }[]).map((row) => [row.view, row.definition]));
  return {
    name: 'RailDefinitionsPlugin',
    version: '1.0.0',
    gather: {
      hooks: {
        pgTables_PgResourceOptions(_, { pgClass, resourceOptions }) {
          const definition = by_view.get(pgClass.relname);
          if (definition) resourceOptions.from = sql`(${written(definition)})`;
        },
      },
    },
  };
}

/** Text that Postgres wrote is no value: it stands in a statement as it is. */
const written = (text: string) => sql(Object.assign([text], { raw: [text] }));

const definitions = `
  select v.relname::text as view, rtrim(pg_get_viewdef(v.oid), '; ') as definition
  from pg_catalog.pg_class v
  where v.relnamespace = 'data'::regnamespace and v.relkind = 'v'`;
