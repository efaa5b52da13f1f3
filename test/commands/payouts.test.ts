import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { command as runCommand } from '../command_process.ts';
import { encryption_key, eventually, type Json, sql, startRail } from '../harness.ts';
import { batchOf, bonus, generated, payee, setRail } from '../program/payouts/fixture.ts';
import { spawnRail } from '../rail_process.ts';
import { openShop } from '../shop.ts';

const service = await startRail();
const environment = { DATABASE_URL: service.url, RAIL_ENCRYPTION_KEY: encryption_key.toString('base64') };
const rail = (...args: string[]) => runCommand(['payouts', ...args], environment);
const answerOf = async (...args: string[]): Promise<Json> => JSON.parse((await rail(...args, '--json')).stdout);

/** A program with a partner who is paid in two currencies, and one who earned too little. */
async function openProgram(settings: Json = {}) {
  const shop = await openShop(service, settings);
  const ada = await payee(shop, [123_456, 44]);
  await bonus(shop, ada, 1_500, { currency: 'JPY' });
  const poor = await payee(shop, [4_999]);
  return { shop, ada, poor };
}

t.test('previews what a batch would contain, and creates nothing', async (t) => {
  const { shop, ada, poor } = await openProgram();
  const found = await answerOf('preview', '--program', shop.program_id);
  const over_http = await shop.merchant.request('POST', '/v1/payout_batches', {
    program_id: shop.program_id,
    preview: true,
  });
  const { cutoff: _, due_at: __, ...rest } = over_http.body;
  t.match(found, rest, 'what the API answers');

  const { stdout } = await rail('preview', '--program', shop.program_id);
  t.match(
    stdout,
    /^2 partners have a balance by 20\S+Z\. A batch would have 2 payouts, due 20\S+Z\. Nothing was created\.\n/,
  );
  t.match(stdout, /\nCURRENCY +PAYOUTS +AMOUNT\nJPY +1 +JPY 1,500\nUSD +1 +USD 1,235\.00\n/);
  t.match(stdout, /\nbelow_minimum +1 +The balance is below the minimum for a payout\.\n/);
  t.match(stdout, new RegExp(`\n${ada.id} +USD 1,235\\.00 +bank_transfer +2\n`));
  t.match(stdout, new RegExp(`\n${poor.id} +USD 49\\.99 +below_minimum\n`));
  t.same(await shop.list('payout_batches'), []);

  const past = await rail('preview', '--program', shop.program_id, '--cutoff', '2020-01-01T00:00:00Z');
  t.match(past.stdout, /^0 partners.*\n\nNobody is paid\.\n\nNo balance is left out\.\n/);
  t.match(past.stdout, /\n3 commissions of USD 1,284\.99 together mature after the cut-off, the first on 20\S+Z\.\n/);
  t.match(past.stdout, /\n1 commission of JPY 1,500 matures after the cut-off, on 20\S+Z\.\n/);
});

t.test('creates a batch, follows it, and shows what it came to', async (t) => {
  const { shop } = await openProgram();
  const due_at = new Date(Date.now() + 60 * 86_400_000).toISOString();
  const { code, stdout, stderr } = await rail('run', '--program', shop.program_id, '--due-at', due_at);
  t.equal(code, 0);
  const [batch] = await shop.list('payout_batches');
  t.match(batch, { status: 'ready', due_at, created_by_user_id: null });
  t.match(stderr, new RegExp(`^Created ${batch?.id}\\.[^\n]*\n2 of 2 partners looked at, 2 payouts created\n$`));
  t.match(
    stdout,
    new RegExp(`^${batch?.id} is ready\\.\n\nCURRENCY +PAYOUTS +AMOUNT\nJPY +1 +JPY 1,500\nUSD +1 +USD 1,235\\.00\n`),
  );
  t.match(stdout, /\nbelow_minimum +1 /);
  t.match(stdout, `rail payouts status --batch ${batch?.id}\n`);

  const early = ['run', '--program', shop.program_id, '--cutoff', '2020-01-01T00:00:00Z'];
  t.match(await rail(...early), {
    ...{ code: 0, stderr: '' },
    stdout:
      /^No partner has a balance by 2020-01-01T00:00:00\.000Z: no batch was created\.\n\n1 commission of USD 49\.99 matures after/,
  });
  t.same(await answerOf(...early), { batch: null, cutoff: '2020-01-01T00:00:00.000Z' });
  t.equal((await shop.list('payout_batches')).length, 1);
});

t.test('Ctrl-C leaves the batch to the worker, and says how to follow it', async (t) => {
  const { shop } = await openProgram();
  // A batch of the same program that takes its turn first, for as long as this transaction lasts.
  const client = await service.store.database.connect();
  await client.query('begin');
  await client.query(`select pg_advisory_xact_lock(hashtextextended('payout batches of ${shop.program_id}', 0))`);
  const running = spawnRail(t, ['payouts', 'run', '--program', shop.program_id], environment);
  const [, batch_id] = await running.until(/Created (batch_\w+)/);
  const { code, stdout, stderr } = await running.stop('SIGINT');
  await client.query('rollback');
  client.release();
  t.match({ code, stdout }, { code: 130, stdout: '' });
  t.match(stderr, `${batch_id} goes on. Follow it with: npx --no rail payouts status --batch ${batch_id}\n`);
  t.match(await generated(shop.merchant, batch_id as string), { status: 'ready' });
});

t.test('shows batches, their payouts by status and currency, and errors by code', async (t) => {
  const { shop, ada } = await openProgram();
  const batch = await batchOf(shop);
  const usd = (await shop.list('payouts')).find(({ currency }) => currency === 'USD');
  await shop.merchant.post(`/v1/payouts/${usd?.id}/mark_paid`, {});
  const paid = await rail('status', '--batch', batch.id);
  t.match(paid.stdout, /^BATCH +STATUS +DUE AT +CURRENCY +PENDING +PROCESSING +PAID +FAILED\n/);
  t.match(paid.stdout, new RegExp(`\n${batch.id} +ready +20\\S+Z +JPY +JPY 1,500 in 1\n`));
  t.match(paid.stdout, /\n +USD +USD 1,235\.00 in 1\n$/);

  await bonus(shop, ada, 9_000);
  await batchOf(shop);
  const batches = await answerOf('status', '--program', shop.program_id);
  t.equal(batches.length, 2);
  t.match(batches[0].by_status, [
    { currency: 'USD', status: 'pending', payouts: 1, amount_minor: 9_000, error_code: null, livemode: true },
  ]);
  t.match(batches[1].by_status, [
    { currency: 'JPY', status: 'pending' },
    { currency: 'USD', status: 'paid' },
  ]);

  // Reports of rails have tests of their own.
  await service.query(sql`
    update program.payout set status = 'failed', failed_at = now(), error_code = 'account_closed', error_message = 'Closed.'
    where batch_id = ${batches[0].id} and currency = 'USD'`);
  t.match(
    (await rail('status', '--batch', batches[0].id)).stdout,
    new RegExp(`\n\nBATCH +ERROR +PAYOUTS +AMOUNT\n${batches[0].id} +account_closed +1 +USD 90\\.00\n$`),
  );
});

t.test('exports the payment file of a batch, as the API does', async (t) => {
  const { shop } = await openProgram();
  const batch = await batchOf(shop);
  const options = ['export', '--batch', batch.id];
  t.match(await rail(...options), { code: 1, stdout: '', stderr: /^rail: The batch has no file yet.*\n$/ });
  const debtor = { name: 'Acme GmbH', iban: 'DE89370400440532013000', bic: 'COBADEFFXXX' };
  await setRail(service, shop, 'bank_transfer', debtor);
  const [usd] = (await shop.list('payouts')).filter(({ currency }) => currency === 'JPY');
  await shop.merchant.post(`/v1/payouts/${usd?.id}/send`);
  const { text } = await shop.merchant.request('GET', `/v1/payout_batches/${batch.id}/export`);
  t.match(text, '<?xml');
  t.same(await rail(...options), { code: 0, stdout: text, stderr: '' });
  const out = join(t.testdir({}), 'payouts.xml');
  t.match(await rail(...options, '--file', '1', '--out', out), { code: 0, stdout: '', stderr: '' });
  t.equal(await readFile(out, 'utf8'), text);
  t.equal((await stat(out)).mode & 0o777, 0o600);
  t.match(await rail(...options, '--file', '2'), { code: 1, stdout: '', stderr: /no file 2/ });
  t.match(await rail('export', '--batch', 'batch_unknown'), { code: 1, stderr: /There is no batch 'batch_unknown'/ });
});

t.test('sends, retries and marks as paid, one payout or a batch, as the API does', async (t) => {
  const { shop } = await openProgram();
  await setRail(service, shop, 'bank_transfer', { name: 'Acme', iban: 'DE89370400440532013000', bic: 'COBADEFFXXX' });
  const batch = await batchOf(shop);
  const of_batch = ['--batch', batch.id];
  const [one, other] = (await shop.list('payouts')) as [Json, Json];
  const statuses = async () => (await shop.list('payouts')).map(({ status }) => status).toSorted();

  t.match(await rail('send', '--payout', one.id), {
    code: 0,
    stdout: /^pyt_\w+ of \S+ [\d,.]+ is processing\.\n$/,
    stderr: '',
  });
  const sent = await rail('send', ...of_batch);
  t.match(sent, { code: 0, stdout: `rail payouts status --batch ${batch.id}\n`, stderr: '' });
  await eventually(async () => (await statuses()).join() === 'processing,processing', 'the batch to be sent');

  await answerOf('mark-paid', ...of_batch, '--file', '1', '--external-id', 'first');
  await eventually(async () => (await statuses()).join() === 'paid,processing', 'the first file to be paid');
  t.match(await shop.list('payouts', 'status=paid'), [{ id: one.id, external_id: 'first' }]);
  const paid = ['mark-paid', '--payout', other.id, '--paid-at', '2026-11-01T00:00:00Z'];
  t.match(await answerOf(...paid), { status: 'paid', paid_at: '2026-11-01T00:00:00.000Z' });

  for (const payout of [one, other]) await shop.merchant.post(`/v1/payouts/${payout.id}/mark_returned`);
  t.match(await answerOf('retry', '--payout', one.id), { status: 'processing', attempt: 2 });
  await answerOf('retry', ...of_batch);
  await eventually(async () => (await statuses()).join() === 'processing,processing', 'the rest to be sent again');

  const suspended = await payee(shop, [9000]);
  await batchOf(shop);
  await shop.merchant.request('PATCH', `/v1/partners/${suspended.id}`, { status: 'suspended' });
  const [held] = (await shop.list('payouts', `partner_id=${suspended.id}`)) as [Json];
  const refused = await rail('send', '--payout', held.id);
  t.match(refused, { code: 1, stdout: '', stderr: /^rail: The payout cannot be sent \(partner_suspended\)\..*\n$/ });
  const told = (await shop.events()).filter(({ type }) => type === 'payout.not_eligible' || type === 'payout.due');
  t.match(told.at(-1), { type: 'payout.not_eligible', data: { payout_id: held.id } }, 'it is told, as by the API');

  for (const command of ['send', 'retry', 'mark-paid']) {
    for (const wrong of [[], ['--payout', one.id, ...of_batch]])
      t.match(await rail(command, ...wrong), {
        code: 2,
        stdout: '',
        stderr: 'rail: Give either --payout or --batch.\n',
      });
    t.match(await rail(command, '--batch', 'batch_x'), { code: 1, stderr: "rail: There is no batch 'batch_x'.\n" });
    t.match(await rail(command, '--payout', 'pyt_x'), { code: 1, stderr: "rail: There is no payout 'pyt_x'.\n" });
  }
  t.match(await rail('mark-paid', ...of_batch, '--status', 'open'), { code: 2, stderr: /--status/ });
});

t.test('says what is wrong in one line', async (t) => {
  const { shop } = await openProgram();
  for (const command of ['preview', 'run']) {
    t.match(await rail(command), { code: 2, stdout: '', stderr: /--program/ });
    t.match(await rail(command, '--program', 'prg_unknown'), {
      code: 1,
      stderr: "rail: There is no program 'prg_unknown'.\n",
    });
    t.match(await rail(command, '--program', shop.program_id, '--cutoff', '2100-01-01T00:00:00Z'), {
      code: 2,
      stdout: '',
      stderr: /^rail: --cutoff must not be in the future.*\n$/,
    });
  }
  t.match(await rail('status', '--batch', 'batch_unknown'), {
    code: 1,
    stderr: "rail: There is no batch 'batch_unknown'.\n",
  });
  t.same(await shop.list('payout_batches'), []);
});
