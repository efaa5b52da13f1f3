import t from 'tap';
import { command } from '../../command_process.ts';
import { encryption_key, type Json, sql, startRail } from '../../harness.ts';
import { startServer } from '../payouts/rails/attempt.ts';
import { faultsOf, idle, ledgerOf, open } from './chaos.ts';
import { StripeAccount } from './stripe_account.ts';

const plot = { customers: 12, seed: 7, since: Math.floor(Date.now() / 1000) - 28 * 86_400 };

t.test(
  'a history that is read has the ledger of events that came one by one, and twice it is nothing new',
  async (t) => {
    const [calm, old] = [await startServer(t, new StripeAccount()), await startServer(t, new StripeAccount())];
    const in_order = await startRail({ provider_urls: { stripe: calm.url } });
    const one = await open(in_order, calm, plot);
    for (const event of one.story.events) await one.shop.send(event);
    await idle(in_order);

    const rail = await startRail({ provider_urls: { stripe: old.url } });
    const other = await open(rail, old, plot);
    const environment = {
      ...{ DATABASE_URL: rail.url, RAIL_STRIPE_URL: old.url, LOG_LEVEL: 'error' },
      RAIL_ENCRYPTION_KEY: encryption_key.toString('base64'),
    };
    const since = new Date(plot.since * 1000 - 1000).toISOString();
    const asked = ['processor', 'backfill', 'stripe', '--program', other.shop.program_id, '--since', since, '--json'];
    const run = async (...more: string[]): Promise<Json> => {
      const { code, stdout, stderr } = await command([...asked, ...more], environment);
      t.equal(code, 0, stderr);
      return JSON.parse(stdout);
    };
    const dry = await run('--dry-run');
    t.ok(dry.found > 50, `${dry.found} found`);
    t.same(await other.shop.inbox(), []);
    t.match(await run(), { found: dry.found, read: dry.read });
    await idle(rail);
    t.same(await faultsOf(rail, other.shop, other.story), []);
    t.equal(money(await ledgerOf(rail, other.shop)), money(await ledgerOf(in_order, one.shop)));
    t.match(await run(), { found: 0, read: dry.read });
    const [{ left }] = (await rail.query<Json>(
      sql`select count(*) filter (where backfill is not null) as left from program.processor`,
    )) as [Json];
    t.equal(left, 0);
  },
);

/** When disputes were closed, and refunds that failed, are not in what Stripe keeps of them. */
const money = (ledger: string): string =>
  ledger
    .split('\n')
    .filter((line) => line.startsWith('{"charge"'))
    .map((line) => {
      const { charge, amount, refunded, status, customer } = JSON.parse(line);
      return JSON.stringify({ charge, amount, refunded, status, customer });
    })
    .join('\n');
