import t from 'tap';
import { startRail } from '../../harness.ts';
import { shareCompiled } from '../../runner/warm_up.ts';
import { startServer } from '../payouts/rails/attempt.ts';
import { faultsOf, idle, ledgerOf, open, unleash } from './chaos.ts';
import { StripeAccount } from './stripe_account.ts';

/** `npm run soak -- processors`: the chaos of the test with 850 customers, some 10,000 events, and more kills. */
export async function soakProcessors({
  kills = 200,
  seed,
}: {
  kills?: number | undefined;
  seed: number;
}): Promise<void> {
  t.setTimeout(4 * 3_600_000);
  await shareCompiled(t);
  const plot = { customers: 850, seed, since: Math.floor(Date.now() / 1000) - 28 * 86_400 };
  await t.test(`the ledger is that of the events in order (--seed ${seed})`, async (t) => {
    const [calm, wild] = [await startServer(t, new StripeAccount()), await startServer(t, new StripeAccount())];
    const in_order = await startRail({ provider_urls: { stripe: calm.url } });
    const one = await open(in_order, calm, plot);
    for (const event of one.story.events) await one.shop.send(event);
    await idle(in_order);
    const rail = await startRail({ worker: false, durability: 'durable', provider_urls: { stripe: wild.url } });
    const other = await open(rail, wild, plot);
    process.stderr.write(`${other.story.events.length} events in order, now in disorder\n`);
    await unleash(rail, wild, other.shop, other.story, { seed, kills: Math.ceil(kills / 2), lost: 20 });
    const faults = [
      ...(await faultsOf(in_order, one.shop, one.story)),
      ...(await faultsOf(rail, other.shop, other.story)),
    ];
    const [as_told, in_disorder] = [await ledgerOf(in_order, one.shop), await ledgerOf(rail, other.shop)];
    const [missing, wrong] = [without(as_told, in_disorder), without(in_disorder, as_told)];
    process.stdout.write(
      `${other.story.events.length} events of ${plot.customers} customers, shuffled, up to three times, every 20th lost, ${kills} kills: ${faults.length} faults, ${wrong.length} rows of the ledger differ (--seed ${seed})\n`,
    );
    t.same(faults, []);
    t.same(wrong, missing);
  });
}

/** The rows that the other ledger has not. */
function without(rows: string[], others: string[]): string[] {
  const known = new Set(others);
  return rows.filter((row) => !known.has(row));
}
