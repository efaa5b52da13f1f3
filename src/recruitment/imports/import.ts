import sql from 'sql-template-tag';
import { z } from 'zod';
import type { Vault } from '../../core/encryption/vault.ts';
import type { Tx } from '../../core/postgres/transaction.ts';
import { type Operation, operation, readOperations } from '../../core/resource/operation.ts';
import { resource, tenant } from '../../core/resource/resource.ts';
import { documentedEnum, id, objectName, text, timestamp } from '../../core/values/fields.ts';
import { newId } from '../../core/values/id.ts';
import { Problem } from '../../core/values/problem.ts';
import { type Actor, actorOf } from '../brands/acting.ts';
import { brands } from '../brands/brand.ts';
import { base_path } from '../events/base_path.ts';
import { brand_id } from '../events/fields.ts';
import { storeChunks } from './chunk.ts';
import type { Mapping } from './mapping.ts';

const states = {
  queued: 'no worker has begun',
  running: 'rows are being imported',
  done: 'every row was imported or refused',
  failed: 'the rest of the file could not be imported (`error`); the rows before stay imported',
} as const;
const count = z.int().min(0);
const errors_shown = 100;
/** The limit of a file: 32 MiB. */
export const most_bytes = 32 * 1024 * 1024;
/** Imports of an organization that are queued or running. */
const most_unfinished = 20;

export const imports = resource({
  object: 'import',
  plural: 'imports',
  scoped_as: 'prospects',
  base_path,
  table: 'recruitment.import',
  unique: { import_chunk_once: null },
  doc: 'An import of prospects from a file.',
  relations: { brand: brands },
  fields: {
    id: id('fim'),
    object: objectName('import'),
    brand_id: id('fbr').describe('The brand that the prospects are added to.'),
    state: documentedEnum(states),
    format: z.enum(['csv', 'ndjson']).describe('What the file is.'),
    mapping: z
      .record(z.string(), text.nullable())
      .describe('The field that each column is imported as. Null: the column is left out.'),
    dry_run: z.boolean().describe('Whether it only reports what it would do.'),
    update_existing: z.boolean().describe('Whether prospects that exist are updated.'),
    total: count.describe('The rows of the file. Counted by its lines until the import is done.'),
    created: count.describe('Rows that created a prospect so far.'),
    updated: count.describe('Rows that changed a prospect that existed, so far.'),
    unchanged: count.describe('Rows of prospects that exist and stayed as they were, so far.'),
    refused: count.describe('Rows that were refused so far.'),
    errors: z
      .array(
        z.object({
          line: z.int().describe('The line of the file that the row ends on. The first line is 1.'),
          field: text.nullable().describe('The field that is wrong. Null: the whole row.'),
          reason: text.describe('What is wrong with it.'),
        }),
      )
      .describe(`The first ${errors_shown} rows that were refused. \`GET /imports/{id}/errors\` lists all.`),
    error: text.nullable().describe('Why the import failed, as a sentence. Null: it did not.'),
    started_at: timestamp.nullable().describe('When a worker began. Null: not yet.'),
    finished_at: timestamp.nullable().describe('When it ended. Null: not yet.'),
    created_at: timestamp,
    updated_at: timestamp,
  },
  computed: {
    errors: sql`coalesce((
      select json_agg(json_build_object('line', e.line, 'field', e.field, 'reason', e.reason) order by e.id)
      from (
        select e.id, e.line, e.field, e.reason from recruitment.import_error e
        where e.organization_id = t.organization_id and e.import_id = t.id
        order by e.id
        limit ${errors_shown}
      ) as e), '[]'::json)`,
  },
});
export type Import = z.infer<typeof imports.record>;

const flag = z.enum(['true', 'false']);
const dry_run = 'Only report what the import would do.';
const update_existing =
  'Update prospects that exist by the fields that their rows have. Without it, they stay as they are.';

export const Body = z.strictObject({
  document: text.min(1).describe('The file: CSV whose first line names the columns, or NDJSON.'),
  brand_id: brand_id.optional().describe('The brand that the prospects are added to. Required here or in the query.'),
  mapping: z
    .record(z.string(), z.string().nullable())
    .optional()
    .describe(
      'The field that a column is imported as, by the name of the column: `url`, `key`, `channel`, `name`, `email`, `country_code`, `language_code`, `timezone`, `followers`, `description`, or `custom.<name>`. Null leaves the column out. Columns that are not named here are known by their names.',
    ),
  dry_run: z.boolean().optional().describe(`${dry_run} Default: false.`),
  update_existing: z.boolean().optional().describe(`${update_existing} Default: false.`),
});

const Query = z.strictObject({
  brand_id: z.string().min(1).optional().describe('The brand, when the body is a file.'),
  mapping: z
    .string()
    .max(4096)
    .optional()
    .describe(
      'When the body is a file: pairs of column and field, separated by commas: `Blog=url,Mail=email`. An empty field leaves the column out.',
    ),
  dry_run: flag.optional().describe(`When the body is a file: ${dry_run.toLowerCase()}`),
  update_existing: flag.optional().describe('When the body is a file: update prospects that exist.'),
});

export const importOperations: Operation[] = [
  operation({
    name: 'prospects.import',
    title: 'Import prospects',
    method: 'POST',
    path: `${base_path}/prospects/import`,
    scope: 'prospects:write',
    summary: 'Imports prospects from a CSV or NDJSON file. It runs as a job.',
    doc: 'Send the file as the field `document`, or as the body with `Content-Type: text/csv` or `application/x-ndjson` and the other fields in the query: UTF-8, at most 32 MiB and 100,000 rows. An organization can have 20 imports that are queued or running. CSV is separated by commas, semicolons or tabs. A row needs `url` or `key`; `channel` follows from the URL where it is missing. Rows that are wrong are refused one by one, and `GET /recruitment/v1/imports/{id}` says which. Emits `affiliate.added` with the source `csv_import` for each new prospect, and `email.revealed` with an address. A prospect is known once in each channel of a brand: rows of those that exist count as `unchanged`, or as `updated` with `update_existing`. An address that is barred from outreach stays barred.',
    query: Query,
    body: Body,
    example: {
      brand_id: 'sample_fbr_01kap3b6n8f2v9w4x7y0z1a2b3',
      mapping: { Blog: 'url', Owner: 'name', Mail: 'email' },
      document: 'Blog,Owner,Mail\nhttps://baking.example.com/,Ada,ada@baking.example.com\n',
    },
    upload: { field: 'document', media_types: ['text/csv', 'application/x-ndjson'], most_bytes },
    reply: imports.schema,
    status: 202,
    errors: ['missing_parameter', 'resource_not_found', 'too_many_imports'],
    async run({ tx, query, body, caller, services: { vault } }) {
      const brand = body.brand_id ?? query.brand_id;
      if (brand === undefined) {
        throw new Problem('missing_parameter', "'brand_id' is required, in the body or the query.", {
          param: 'brand_id',
        });
      }
      return createImport(tx, vault, {
        ...{ brand_id: brand, document: body.document, by: await actorOf(tx, caller) },
        mapping: body.mapping ?? mappingOfPairs((query.mapping ?? '').split(',')),
        dry_run: body.dry_run ?? query.dry_run === 'true',
        update_existing: body.update_existing ?? query.update_existing === 'true',
      });
    },
  }),
  ...readOperations({ resource: imports, within: brands, by: ['state'] }),
];

/**
 * Parses `Blog=url` and `Mail=email`.
 * @throws Problem invalid_parameter
 */
export function mappingOfPairs(pairs: string[]): Mapping {
  const given = pairs.filter((pair) => pair.trim() !== '');
  return Object.fromEntries(
    given.map((pair) => {
      const at = pair.lastIndexOf('=');
      if (at < 1) {
        throw new Problem('invalid_parameter', `'mapping' is not valid: '${pair}' is not of the form column=field.`, {
          param: 'mapping',
        });
      }
      return [pair.slice(0, at).trim(), pair.slice(at + 1).trim() || null];
    }),
  );
}

export interface NewImport {
  brand_id: string;
  document: string;
  mapping: Mapping;
  dry_run: boolean;
  update_existing: boolean;
  by: Actor;
}

/** Stores a file; a job imports it. @throws Problem resource_not_found, too_many_imports, invalid_parameter */
export async function createImport(tx: Tx, vault: Vault, given: NewImport): Promise<Import> {
  const { brand_id: brand, document, by, dry_run: is_dry, update_existing: updates } = given;
  await brands.get(tx, brand, { param: 'brand_id' });
  await requireTurn(tx);
  const { describeDocument } = await import('./document.ts');
  const described = await describeDocument(document, given.mapping);
  const created = (await imports.insert(tx, {
    ...{ id: newId('fim'), brand_id: brand, state: 'queued', ...described, dry_run: is_dry, update_existing: updates },
    ...{ by_user_id: by.user_id, by_member_id: by.member_id },
  })) as Import;
  await storeChunks(tx, vault, created.id, document);
  tx.enqueue('recruitment/import_prospects', {
    ...{ organization_id: tx.organization_id, request_id: tx.request_id, id: created.id },
  });
  return created;
}

/** Files are stored until they are imported: an organization has so many at a time. @throws Problem too_many_imports */
async function requireTurn(tx: Tx): Promise<void> {
  await tx.all(sql`select pg_advisory_xact_lock(hashtextextended(${`imports ${tx.organization_id}`}, 0))`);
  const { count: unfinished } = await tx.one<{ count: number }>(sql`
    select count(*) as count from recruitment.import t where ${tenant(tx)} and t.finished_at is null`);
  if (unfinished < most_unfinished) return;
  throw new Problem(
    'too_many_imports',
    `${unfinished} imports are queued or running, and an organization can have ${most_unfinished}. Wait until one has finished.`,
  );
}
