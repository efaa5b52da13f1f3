/** Payments that requests and a billing processor both tell of, maybe by different ids: see ../processors/README.md. */
import sql, { type Sql } from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import { billing_processors } from '../programs/program.ts';
import type { Sale } from './sale.ts';

interface Charge {
  program_id: string;
  external_charge_id: string;
}

/** The pairs of `g (program_id, charge)`. */
export const chargesOf = (charges: Charge[]): Sql => sql`
  unnest(${charges.map(({ program_id }) => program_id)}::text[], ${charges.map((one) => one.external_charge_id)}::text[]) as g (program_id, charge)`;

/** Joins what the ids of `g` are known as. */
export const knownCharge = (tx: Tx): Sql => sql`
  program.processor_object o on o.organization_id = ${tx.organization_id} and o.program_id = g.program_id
    and o.processor = any(${[...billing_processors]}::text[]) and o.external_id = g.charge`;

/**
 * Locks the ids of charges, as the events of a connected processor do, until the transaction ends: of a request and an event about one payment, one
 * comes after the other and sees it. Always before any row.
 */
export const lockCharges = (tx: Tx, charges: Charge[]): Promise<object[]> =>
  tx.all(sql`
    select pg_advisory_xact_lock(hashtextextended(c.program_id || ' ' || c.charge, 2))
    from (
      select distinct g.program_id, g.charge
      from ${chargesOf(charges)}
      join program.program t on ${tenant(tx)} and t.id = g.program_id and t.processor = any(${[...billing_processors]}::text[])
      order by g.program_id, g.charge
    ) as c`);

/** Returns whether a processor, connected or not, told about a charge that was nobody's, or a deleted sale, until now. */
export async function isLost(tx: Tx, charge: Charge): Promise<boolean> {
  const lost = await tx.maybe(sql`
    select from ${chargesOf([charge])}
    join ${knownCharge(tx)}
    left join program.sale s on s.organization_id = o.organization_id and s.id = o.object_id
    where o.object_id is null or s.deleted_at is not null
    limit 1`);
  return lost !== undefined;
}

/** Has worked on again what the processor told about a charge that was lost until this sale recorded it. */
export const releaseCharge = (tx: Tx, { id: sale_id, program_id, external_charge_id }: Sale): void => {
  const payload = { organization_id: tx.organization_id, program_id, external_ids: [external_charge_id], sale_id };
  tx.enqueue('program/release_processor_events', payload);
};
