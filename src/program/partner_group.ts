import sql from 'sql-template-tag';
import { z } from 'zod';
import { id, objectName, text, timestamp } from '../core/fields.ts';
import { type Operation, readOperations } from '../core/operation.ts';
import { notFound } from '../core/problem.ts';
import { type Row, resource, tenant } from '../core/resource.ts';
import type { Tx } from '../core/transaction.ts';
import { program } from './program.ts';

export const partnerGroup = resource({
  object: 'group',
  plural: 'groups',
  table: 'program.partner_group',
  doc: 'Partners who are treated alike. Every program has a default group.',
  fields: {
    id: id('grp'),
    object: objectName('group'),
    program_id: id('prg'),
    name: text,
    slug: text,
    description: text.nullable(),
    landing_url: text.nullable(),
    is_private: z.boolean(),
    is_default: z.boolean(),
    created_at: timestamp,
    updated_at: timestamp,
  },
  stats: { fields: { partners: z.int() }, load: groupStats },
});

export const partnerGroupOperations: Operation[] = readOperations({ of: partnerGroup, within: program });

/** The group that a new partner joins: the one named, which must be the program's, or the program's default. */
export async function groupToJoin(tx: Tx, program_id: string, group_id: string | undefined): Promise<string> {
  const wanted = group_id === undefined ? sql`t.is_default` : sql`t.id = ${group_id}`;
  const found = await partnerGroup.find(tx, sql`${tenant(tx)} and t.program_id = ${program_id} and ${wanted}`);
  if (!found) throw notFound('group', group_id ?? 'default', 'group_id');
  return found.id;
}

async function groupStats(tx: Tx, rows: Row[]): Promise<Map<string, object>> {
  const counted = await tx.all<{ id: string; partners: number }>(sql`
    select x.group_id as id, count(*) as partners
    from program.partner x
    where x.organization_id = ${tx.organization_id} and x.group_id = any(${rows.map((row) => row.id)}) and x.deleted_at is null
    group by x.group_id`);
  const partners = new Map(counted.map((row) => [row.id, row.partners]));
  return new Map(rows.map(({ id }) => [id, { partners: partners.get(id) ?? 0 }]));
}
