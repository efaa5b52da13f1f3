import t from 'tap';
import { bar, changeText, narrowed, sparkline } from '../../src/program/reports/summary/chart.ts';
import { command } from '../command_process.ts';
import { encryption_key, startRail } from '../harness.ts';
import { openShop } from '../shop.ts';

const service = await startRail();
const environment = { DATABASE_URL: service.url, RAIL_ENCRYPTION_KEY: encryption_key.toString('base64') };
const in_a_minute = () => new Date(Date.now() + 60_000).toISOString();
const report = (...args: string[]) => command(['report', ...args], environment);

t.test('prints a report as a table with bars, as CSV and as JSON', async (t) => {
  const shop = await openShop(service);
  await shop.rule();
  const [ada, bob] = [await shop.partner(), await shop.partner()];
  await shop.sale({ partner_id: ada.id, amount_minor: 123_450 });
  await shop.sale({ partner_id: bob.id, amount_minor: 61_725 });
  await shop.sale({ partner_id: bob.id, amount_minor: 100, currency: 'EUR' });
  const to = ['--to', in_a_minute()];
  const table = await report('partners', ...to);
  t.match(table, { code: 0, stderr: '' });
  t.match(table.stdout, /^revenue +USD 1,851\.75 +—$/m);
  t.match(table.stdout, new RegExp(`^${ada.id} +${ada.handle} .*USD 1,234\\.50.* █{24}$`, 'm'));
  t.match(table.stdout, new RegExp(`^${bob.id} .* █{12}$`, 'm'));
  t.match(table.stdout, 'Not included: money in EUR');
  const by_clawbacks = (await report('partners', ...to, '--sort=-clawbacks_minor')).stdout;
  t.match(by_clawbacks, / PAID +CLAWBACKS$/m, 'shows what rows are sorted by');
  t.notMatch(by_clawbacks, '█', 'draws what rows are sorted by');
  t.match((await report('overview', ...to, '--days', '5')).stdout, /^revenue +▁+█/m);
  const month = (await report('overview', ...to, '--sort=-revenue_minor')).stdout;
  t.match(month, /^revenue +▁+█$/m, 'in the order of time');
  t.equal(month.match(/^\d{4}-\d\d-\d\d /gm)?.length, 31, 'a row for each day');
  t.match(
    (await report('payouts', ...to)).stdout,
    /^pending +USD 0\.00 .*\nprocessing +USD 0\.00 .*\nfailed +USD 0\.00 /m,
  );
  const csv = await report('partners', ...to, '--csv', '--filter', `partner_id=${bob.id}`);
  t.match(csv.stdout, new RegExp(`^partner_id,handle,[^\\r\\n]*\\r\\n${bob.id},[^\\r\\n]*\\r\\n$`));
  t.match(JSON.parse((await report('products', ...to, '--json')).stdout), { object: 'report', totals: { sales: 3 } });
  for (const wrong of [
    ['bogus'],
    ['partners', '--sort=handle'],
    ['partners', '--filter', 'bogus=1'],
    ['partners', '--filter', 'country'],
    ['partners', '--filter', 'limit=1'],
    ['partners', '--filter', 'country=DE', 'country=US'],
    ['partners', '--days', '9001'],
    ['partners', '--limit', '0'],
    ['partners', '--limit', '10001'],
    ['partners', '--csv', '--json'],
  ])
    t.match(await report(...wrong), { code: 2, stdout: '', stderr: /^(rail|error): / }, wrong.join(' '));
  t.match(await report('partners', '--program', 'prg_x'), {
    code: 1,
    stdout: '',
    stderr: "There is no program 'prg_x'",
  });
});

t.test('aligns wide characters, and keeps control characters from the terminal', async (t) => {
  const shop = await openShop(service);
  const partner = await shop.partner();
  for (const product_id of ['商品', 'e\u0301', '\u001b[2J', 'a\nb'])
    await shop.sale({ partner_id: partner.id, product_id });
  const { stdout } = await report('products', '--program', shop.program_id, '--days', '1', '--to', in_a_minute());
  const width = 'PRODUCT_ID  '.length;
  for (const [shown, columns] of [
    ['商品', 4],
    ['e\u0301', 1],
    [' [2J', 4],
    ['a b', 3],
  ] as const)
    t.match(stdout, `\n${shown}${' '.repeat(width - columns)}    1  USD 100.00  `);
});

t.test('draws numbers as bars and sparklines', async (t) => {
  t.same(
    [bar(0, 10, 8), bar(10, 10, 8), bar(5, 10, 8), bar(1, 1_000, 8), bar(-5, 10, 8)],
    ['', '████████', '████', '▏', ''],
  );
  t.equal(sparkline([0, 1, 2, 7]), '▁▂▃█');
  t.equal(sparkline([0, 0]), '▁▁');
  t.same(narrowed([1, 2, 3, 4, 5], 3), [3, 7, 5]);
  t.same([changeText(null), changeText(1_234), changeText(-50), changeText(0)], ['—', '+12.3 %', '-0.5 %', '±0.0 %']);
});
