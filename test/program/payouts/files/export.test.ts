import t from 'tap';
import { bankDay } from '../../../../src/program/payouts/bank/bank_day.ts';
import { type Json, startRail } from '../../../harness.ts';
import { openShop, type Shop } from '../../../shop.ts';
import { all, one, readXml } from '../bank/xml_tree.ts';
import { bank, batchOf, bonus, payee } from '../fixture.ts';
import { freezeAll, setDebtor } from './fixture.ts';

const rail = await startRail();
const crypto = {
  method: 'crypto',
  details: { address: '0x52908400098527886E0F7030069857D2E4169EE7', network: 'ethereum' },
};

const exported = ({ merchant }: Shop, { id }: Json, query = '') =>
  merchant.request('GET', `/v1/payout_batches/${id}/export${query}`);

t.test('exports what was sent, in each currency, and the same bytes after everything has changed', async (t) => {
  const shop = await openShop(rail);
  await setDebtor(rail, shop);
  const ada = await payee(shop, [1_234_567], { first_name: 'Ada', last_name: 'Lovelace' });
  await bonus(shop, ada, 5001, { currency: 'JPY' });
  await bonus(shop, ada, 12_345, { currency: 'KWD' });
  const date = bankDay(new Date(Date.now() + 60 * 86_400_000).toISOString());
  const batch = await batchOf(shop, { due_at: `${date}T12:00:00Z` });
  await freezeAll(rail, shop, batch.id);
  const answer = await exported(shop, batch);
  t.equal(answer.status, 200, answer.text);
  t.equal(answer.headers['content-type'], 'application/xml');
  t.equal(answer.headers['content-disposition'], `attachment; filename="payouts-${batch.id}-1.xml"`);
  const root = readXml(answer.text);
  const message = root.children[0] as (typeof root.children)[0];
  const [{ message_id, created_at }] = (await shop.merchant.get(`/v1/payout_batches/${batch.id}`)).files;
  t.equal(one(message, 'GrpHdr', 'MsgId'), message_id);
  t.equal(one(message, 'GrpHdr', 'CreDtTm'), `${created_at.slice(0, 19)}Z`);
  t.equal(one(message, 'GrpHdr', 'CtrlSum'), '17359.015');
  const payouts = await shop.list('payouts');
  const of = (currency: string) => payouts.find((payout) => payout.currency === currency)?.id.replace('_', '-');
  t.same(
    all(message, 'PmtInf').map((block) => [
      all(block, 'CdtTrfTxInf', 'Amt', 'InstdAmt').map(({ attributes, text }) => `${text} ${attributes}`),
      one(block, 'CdtTrfTxInf', 'PmtId', 'EndToEndId'),
      one(block, 'CdtTrfTxInf', 'CdtrAcct', 'Id', 'IBAN'),
      one(block, 'ReqdExctnDt', 'Dt'),
    ]),
    [
      [['5001 Ccy="JPY"'], `${of('JPY')}-1`, bank.details.iban, date],
      [['12.345 Ccy="KWD"'], `${of('KWD')}-1`, bank.details.iban, date],
      [['12345.67 Ccy="USD"'], `${of('USD')}-1`, bank.details.iban, date],
    ],
  );
  await shop.merchant.request('PUT', `/v1/partners/${ada.id}/payout_method`, crypto);
  await shop.merchant.patch(`/v1/partners/${ada.id}`, { first_name: 'Augusta' });
  await shop.merchant.patch(`/v1/programs/${shop.program_id}`, { name: 'Other' });
  await setDebtor(rail, shop, { account: { name: 'Other', iban: 'FR1420041010050500013M02606', bic: 'BNPAFRPP' } });
  await shop.merchant.post(`/v1/payouts/${payouts[0]?.id}/mark_paid`);
  t.equal((await exported(shop, batch)).text, answer.text);
});

t.test('asks for the next day on which banks pay where the due date has passed', async (t) => {
  const shop = await openShop(rail);
  await setDebtor(rail, shop);
  await payee(shop, [6000]);
  const batch = await batchOf(shop, { due_at: '2026-01-01T00:00:00Z' });
  await freezeAll(rail, shop, batch.id);
  const [{ created_at }] = (await shop.merchant.get(`/v1/payout_batches/${batch.id}`)).files;
  t.match((await exported(shop, batch)).text, `<ReqdExctnDt><Dt>${bankDay(created_at)}</Dt></ReqdExctnDt>`);
});

t.test('names the files where there are several, and writes crypto as CSV', async (t) => {
  const shop = await openShop(rail, { payout_methods: ['bank_transfer', 'crypto'] });
  await setDebtor(rail, shop, { mode: 'test' });
  await payee(shop, [6000]);
  const eve = await payee(shop, [7000], { payout_method: crypto, first_name: '=Eve' });
  await bonus(shop, eve, 1, { currency: 'KWD' });
  const batch = await batchOf(shop);
  t.match(await exported(shop, batch), {
    status: 409,
    body: { error: { code: 'invalid_state_transition', message: /has no file yet. Send its payouts/ } },
  });
  await freezeAll(rail, shop, batch.id);
  await freezeAll(rail, shop, batch.id, 'crypto');
  t.match(await exported(shop, batch), {
    status: 400,
    body: { error: { code: 'missing_parameter', param: 'file', message: /has 2 files: 1, 2/ } },
  });
  t.match(await exported(shop, batch, '?file=3'), {
    status: 404,
    body: { error: { code: 'resource_not_found', param: 'file', message: /no file 3. Its files are 1, 2/ } },
  });
  t.match(await exported(shop, batch, '?file=0'), { status: 400, body: { error: { param: 'file' } } });
  const csv = await exported(shop, batch, '?file=2');
  t.equal(csv.headers['content-type'], 'text/csv; charset=utf-8');
  const payouts = (await shop.list('payouts', `partner_id=${eve.id}`)).reverse();
  const of = (currency: string) => payouts.find((payout) => payout.currency === currency)?.id;
  t.same(
    csv.text.split('\r\n').sort(),
    [
      '',
      'payout_id,partner,network,address,amount,currency,reference',
      ...[
        `${of('KWD')},'=Eve,ethereum,${crypto.details.address},0.001,KWD,${of('KWD')}-1`,
        `${of('USD')},'=Eve,ethereum,${crypto.details.address},70.00,USD,${of('USD')}-1`,
      ].sort(),
    ].sort(),
  );
  const { headers, text } = await exported(shop, batch, '?file=1');
  t.equal(headers['content-disposition'], `attachment; filename="test-payouts-${batch.id}-1.xml"`);
  t.equal(one(readXml(text), 'CstmrCdtTrfInitn', 'GrpHdr', 'NbOfTxs'), '1');
});

t.test('hides account numbers from a key that cannot send', async (t) => {
  const shop = await openShop(rail);
  const batch = await batchOf(shop);
  const reader = await rail.key(shop.merchant.organization_id, { scopes: ['payouts:read', 'payouts:write'] });
  t.match(await reader.request('GET', `/v1/payout_batches/${batch.id}/export`), {
    status: 403,
    body: { error: { code: 'insufficient_scope', param: 'payouts:send' } },
  });
});
