import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import t from 'tap';
import { not_eligible_reasons } from '../../src/program/payouts/eligibility.ts';
import { payout_error_codes } from '../../src/program/payouts/rails/rail.ts';
import { eventually, type Json, startRail } from '../harness.ts';
import { openShop } from '../shop.ts';
import { payee } from './payouts/fixture.ts';

const rail = await startRail();
const text = await (await fetch(`${rail.address}/llms-full.txt`)).text();
const begin = text.indexOf('Paying partners\n');
const chapter = text.slice(begin, text.indexOf('\n## ', begin));

t.test('the chapter on paying partners has every reason and every error code', async (t) => {
  for (const name of [...not_eligible_reasons, ...payout_error_codes]) t.match(chapter, `| \`${name}\` | `);
});

t.test('its examples pay a partner', async (t) => {
  const shop = await openShop(rail);
  const ada = await payee(shop, [12_345]);
  const examples = [...chapter.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, example]) => example);
  t.equal(examples.length, 4);
  const env = { ...process.env, RAIL: rail.address, KEY: shop.merchant.key, PROGRAM: shop.program_id };
  const run = async (script: string) => (await promisify(execFile)('sh', ['-ec', script], { env })).stdout;
  const [set_up, preview, create, send] = examples as [string, string, string, string];
  t.match(JSON.parse(await run(set_up)), { object: 'rail', mode: 'live' });
  t.match(JSON.parse(await run(preview)), { payouts: [{ partner_id: ada.id, amount_minor: 12_345 }] });
  const { id: batch_id } = JSON.parse(await run(create));
  const status = async (): Promise<Json> => shop.merchant.get(`/v1/payout_batches/${batch_id}`);
  await eventually(async () => (await status()).status === 'ready', 'the batch to be ready');
  t.match(JSON.parse(await run(`BATCH=${batch_id}\n${send}`)), { id: batch_id });
  await eventually(async () => (await status()).files.length === 1, 'the payment file');
  t.match(await shop.list('payouts'), [{ status: 'processing', amount_minor: 12_345 }]);
});
