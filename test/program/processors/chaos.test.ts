import t from 'tap';
import { startRail } from '../../harness.ts';
import { startServer } from '../payouts/rails/attempt.ts';
import { faultsOf, idle, ledgerOf, open, unleash } from './chaos.ts';
import { StripeAccount } from './stripe_account.ts';

const seed = 20_261_128;
const size = { customers: 30, seed, since: Math.floor(Date.now() / 1000) - 28 * 86_400 };

t.test(
  'events in any order, doubled, lost and reconciled, while API and worker are killed: the ledger is the same',
  async (t) => {
    const [calm, wild] = [await startServer(t, new StripeAccount()), await startServer(t, new StripeAccount())];
    const in_order = await startRail({ provider_urls: { stripe: calm.url } });
    const one = await open(in_order, calm, size);
    for (const event of one.story.events) await one.shop.send(event);
    await idle(in_order);
    t.same(await faultsOf(in_order, one.shop, one.story), []);

    const rail = await startRail({ worker: false, durability: 'durable', provider_urls: { stripe: wild.url } });
    const other = await open(rail, wild, size);
    t.ok(other.story.events.length > 200, `${other.story.events.length} events`);
    await unleash(rail, wild, other.shop, other.story, { seed, kills: 2, lost: 20 });
    t.same(await faultsOf(rail, other.shop, other.story), []);
    t.same(await ledgerOf(rail, other.shop), await ledgerOf(in_order, one.shop));
    t.same(await other.shop.inbox('status=waiting'), []);
    t.same(await other.shop.inbox('status=failed'), []);
  },
);
