/** A payment at a processor becomes a sale where a partner is credited with it, and else stays in the inbox. */
import sql from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';
import { perform } from '../../core/resource/perform.ts';
import { tenant } from '../../core/resource/resource.ts';
import { Problem } from '../../core/values/problem.ts';
import { recordSaleOperation } from '../record_sale.ts';
import type { SaleOutcome } from '../sale_outcome.ts';
import { wasActive } from '../tracking/coupon.ts';
import { release } from './inbox.ts';
import { type Applying, done, findKnown, know, type Outcome, unattributed } from './known.ts';
import type { SaleFact } from './processor.ts';

/** The sale credits nobody: what was written of it is undone. */
class CreditsNobody extends Error {
  override readonly name = 'CreditsNobody';
}

export async function applySale(applying: Applying, fact: SaleFact): Promise<Outcome> {
  const { tx, program } = applying;
  const { external_charge_id, external_customer_id } = fact;
  const ids = [external_charge_id, ...fact.also_known_as, ...(fact.paid_for ?? [])];
  const known = await findKnown(applying, external_charge_id);
  const object_id = known?.object_id ?? (await saleBy(applying, ids))?.id;
  if (object_id) {
    await know(applying, ids, { object_id });
    return done(object_id, 'already_recorded');
  }
  const recorded = await recorder(applying, fact);
  if (recorded === undefined) {
    await know(applying, ids, { object_id: null });
    return unattributed(
      external_customer_id,
      'Nobody is credited with this charge, so it is no sale. It becomes one once its customer is known.',
    );
  }
  if (recorded instanceof Problem) return failed(recorded);
  await know(applying, ids, { object_id: recorded.id });
  // With the sale, its customer may have become known.
  if (external_customer_id !== null) await release(tx, program.id, [external_customer_id]);
  return done(recorded.id);
}

export interface SentSale {
  id: string;
  external_charge_id: string;
}

/** The sale that is recorded by an id of the payment. */
export const saleBy = ({ tx, program }: Applying, ids: string[]): Promise<SentSale | undefined> =>
  tx.maybe(sql`
    select t.id, t.external_charge_id from program.sale t
    where ${tenant(tx)} and t.program_id = ${program.id} and t.external_charge_id = any(${ids}::text[]) and t.deleted_at is null
    order by t.id
    limit 1`);

export const failed = ({ code, message }: Problem): Outcome => ({ status: 'failed', reason: code, message });

/** @returns undefined where nobody is credited */
async function recorder(applying: Applying, fact: SaleFact): Promise<{ id: string } | Problem | undefined> {
  const { tx, program, by, services } = applying;
  const named = await namedIn(tx, program.id, fact);
  if (!named.customer_id && !named.click_id && !named.coupon_external_id) return undefined;
  try {
    return await tx.part(async () => {
      const operation = recordSaleOperation;
      const reply = await perform<SaleOutcome>(
        tx,
        { operation, by, services },
        { body: bodyOf(program.id, fact, named) },
      );
      if (reply instanceof Problem) return existingOf(reply) ?? reply;
      if (reply.partner_id === null && !(await isOwnPurchase(tx, reply.id))) throw new CreditsNobody();
      return reply;
    });
  } catch (error) {
    if (error instanceof CreditsNobody) return undefined;
    throw error;
  }
}

/** The record that a request holds already: somebody sent it by the API. */
export function existingOf({ code, details }: Problem): { id: string } | undefined {
  const { existing } = details as { existing?: { id: string } };
  return code === 'resource_already_exists' && existing ? { id: existing.id } : undefined;
}

interface Named {
  customer_id: string | null;
  click_id: string | null;
  coupon_external_id: string | null;
}

/** By what the sale might be credited to a partner: as far as it is known here. */
const namedIn = (tx: Tx, program_id: string, fact: SaleFact): Promise<Named> =>
  tx.one<Named>(sql`
    select
      (
        select t.id from program.customer t
        where ${tenant(tx)} and t.program_id = ${program_id} and t.external_customer_id = ${fact.external_customer_id} and t.deleted_at is null
      ) as customer_id,
      (
        select t.id from program.click t where ${tenant(tx)} and t.program_id = ${program_id} and t.id = ${fact.click_id ?? null}
      ) as click_id,
      (
        select c.external_id from program.coupon c
        where c.organization_id = ${tx.organization_id} and c.program_id = ${program_id} and c.external_id = any(${fact.coupon_external_ids})
          and c.partner_id is not null and c.deleted_at is null and ${wasActive(fact.occurred_at)}
        order by array_position(${fact.coupon_external_ids}::text[], c.external_id)
        limit 1
      ) as coupon_external_id`);

function bodyOf(program_id: string, fact: SaleFact, { customer_id, click_id, coupon_external_id }: Named): object {
  const { external_charge_id, amount_minor, currency, parts, external_customer_id, occurred_at, metadata } = fact;
  return definite({
    ...{ program_id, external_charge_id, amount_minor, currency, ...parts, occurred_at, metadata },
    external_customer_id: external_customer_id ?? undefined,
    click_id: click_id ?? undefined,
    // One that credits nobody is named too: the sale can say why.
    coupon_external_id: coupon_external_id ?? fact.coupon_external_ids[0],
    external_subscription_id: fact.external_subscription_id,
    product_id: fact.product_id,
    // The processor may have another address of one who is known: it changes nothing.
    customer: customer_id === null && Object.keys(fact.customer).length > 0 ? fact.customer : undefined,
  });
}

export const definite = (fields: Record<string, unknown>): object =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));

async function isOwnPurchase(tx: Tx, sale_id: string): Promise<boolean> {
  const { own } = await tx.one<{ own: boolean }>(
    sql`select t.self_referral_partner_id is not null as own from program.sale t where ${tenant(tx)} and t.id = ${sale_id}`,
  );
  return own;
}
