import t from 'tap';
import { transaction } from '../../../../src/core/postgres/transaction.ts';
import { PayoutFiles } from '../../../../src/program/payouts/files/freeze.ts';
import type { FileMethod } from '../../../../src/program/payouts/files/frozen_transfer.ts';
import { payouts } from '../../../../src/program/payouts/payout.ts';
import { type Json, sql, startRail } from '../../../harness.ts';
import { openShop, type Shop } from '../../../shop.ts';
import { bank, batchOf, payee } from '../fixture.ts';
import { debtor, freezeAll, setDebtor } from './fixture.ts';

const rail = await startRail();

const freeze = (shop: Shop, batch_id: string, method?: FileMethod) => freezeAll(rail, shop, batch_id, method);

const attemptsOf = (batch_id: string): Promise<Json[]> =>
  rail.query(sql`
    select a.* from program.payout_attempt a join program.payout p on p.organization_id = a.organization_id and p.id = a.payout_id
    where p.batch_id = ${batch_id} order by a.id`);

t.test('writes down what is sent, and makes the payouts processing', async (t) => {
  const shop = await openShop(rail);
  await setDebtor(rail, shop);
  await payee(shop, [6000], { first_name: 'Ada', last_name: 'Lovelace' });
  await payee(shop, [7000]);
  const batch = await batchOf(shop);
  const before = await shop.list('payouts');
  await shop.events();
  await freeze(shop, batch.id);
  const [one, other] = await attemptsOf(batch.id);
  const file_id = `f_${batch.id.slice(6)}-1`;
  const common = {
    rail: 'bank_transfer',
    mode: 'live',
    credentials_version: 1,
    status: 'processing',
    number: 1,
    file_id,
  };
  t.match(
    [one, other],
    [
      { ...common, amount_minor: 6000, destination_hint: '3000' },
      { ...common, amount_minor: 7000 },
    ],
  );
  t.equal(one?.id, `${one?.payout_id}-1`);
  t.match(JSON.parse(rail.services.vault.decrypt(one?.request, one?.id)), {
    idempotency_key: one?.id,
    payout_id: one?.payout_id,
    program_name: 'Acme',
    partner_name: 'Ada Lovelace',
    amount_minor: 6000,
    currency: 'USD',
    destination: bank.details,
  });
  const [file] = await rail.query(sql`select * from program.payout_file where batch_id = ${batch.id}`);
  t.match(file, { id: file_id, number: 1, rail: 'bank_transfer' });
  t.same(JSON.parse(rail.services.vault.decrypt(file?.debtor, file_id)), debtor);
  for (const payout of await shop.list('payouts')) {
    t.match(payout, { status: 'processing', attempt: 1, livemode: true, method: 'bank_transfer', failed_at: null });
    t.ok(payout.submitted_at);
  }
  t.match(
    (await shop.events()).map(({ type, data }) => [type, data.payout_id, data.status, data.previous_status]),
    before.map(({ id }) => ['payout.updated', id, 'processing', 'pending']).sort(),
  );
  t.match(await shop.merchant.get(`/v1/payout_batches/${batch.id}`), {
    files: [{ file: 1, message_id: file_id.replace('_', '-'), method: 'bank_transfer', payouts: 2 }],
  });
});

t.test('refuses a batch of a program without an account, and one with a transfer that cannot be written', async (t) => {
  const shop = await openShop(rail, { currency: 'EUR' });
  const american = {
    method: 'bank_transfer',
    details: { account_holder: 'Ada', account_number: '12345678', routing_number: '021000021' },
  };
  const ada = await payee(shop, [6000]);
  await payee(shop, [6000]);
  const batch = await batchOf(shop);
  await shop.merchant.request('PUT', `/v1/partners/${ada.id}/payout_method`, american);
  await t.rejects(freeze(shop, batch.id), {
    code: 'payout_locked',
    message: /PUT \/v1\/programs\/.*\/rails\/bank_transfer/,
  });
  await setDebtor(rail, shop);
  const american_payout = (await shop.list('payouts')).at(-1);
  await t.rejects(freeze(shop, batch.id), {
    code: 'payout_locked',
    message: new RegExp(`${american_payout?.id}.*needs an IBAN.*${american_payout?.partner_id}`),
  });
  t.same(await attemptsOf(batch.id), []);
  t.ok((await shop.list('payouts')).every(({ status, attempt }) => status === 'pending' && attempt === 0));
});

t.test('sends by crypto without an account, and in test mode by settings in test mode', async (t) => {
  const shop = await openShop(rail, { payout_methods: ['crypto', 'wire'] });
  await payee(shop, [6000], {
    payout_method: {
      method: 'crypto',
      details: { address: '0x52908400098527886E0F7030069857D2E4169EE7', network: 'ethereum' },
    },
  });
  await payee(shop, [8000], { payout_method: { ...bank, method: 'wire' } });
  const batch = await batchOf(shop);
  await setDebtor(rail, shop, { rail: 'wire', mode: 'test' });
  await freeze(shop, batch.id, 'crypto');
  await freeze(shop, batch.id, 'wire');
  t.match(
    (await shop.list('payouts')).map(({ method, livemode, status }) => [method, livemode, status]),
    [
      ['wire', false, 'processing'],
      ['crypto', true, 'processing'],
    ],
  );
});

t.test('pays nobody when a payout that was sent in test mode is marked as paid', async (t) => {
  const shop = await openShop(rail);
  await setDebtor(rail, shop, { mode: 'test' });
  await payee(shop, [6000]);
  const batch = await batchOf(shop);
  await freeze(shop, batch.id);
  await shop.events();
  const [{ id }] = (await shop.list('payouts')) as [Json];
  t.match(await shop.merchant.post(`/v1/payouts/${id}/mark_paid`), { status: 'paid', livemode: false });
  t.match(await shop.list('commissions'), [{ status: 'due', payout_id: null, paid_at: null }]);
  t.same(
    (await shop.events()).map(({ type }) => type),
    ['payout.deleted'],
  );
  t.match(await shop.merchant.request('POST', `/v1/payouts/${id}/mark_paid`), { status: 409 });
});

t.test('counts a payout that was never sent and is marked as paid, also where its rail is in test mode', async (t) => {
  const shop = await openShop(rail);
  await setDebtor(rail, shop, { mode: 'test' });
  await payee(shop, [6000]);
  await batchOf(shop);
  const [{ id, livemode }] = (await shop.list('payouts')) as [Json];
  t.equal(livemode, false);
  t.match(await shop.merchant.post(`/v1/payouts/${id}/mark_paid`), { status: 'paid', livemode: true });
  t.match(await shop.list('commissions'), [{ status: 'paid', payout_id: id }]);
});

t.test('numbers files that are sent at the same time', async (t) => {
  const shop = await openShop(rail);
  await setDebtor(rail, shop);
  for (let nth = 0; nth < 6; nth++) await payee(shop, [6000]);
  const batch = await batchOf(shop);
  const all = await shop.list('payouts');
  const { organization_id } = shop.merchant;
  await Promise.all(
    all.map(({ id }) =>
      transaction(rail.store, { organization_id, request_id: null }, async (tx) => {
        const payout = await payouts.get(tx, id, { lock: true });
        const files = new PayoutFiles(tx, rail.services);
        await files.add(batch.id, 'bank_transfer', [payout]);
        await files.emitUpdates();
      }),
    ),
  );
  const { files } = await shop.merchant.get(`/v1/payout_batches/${batch.id}`);
  t.same(
    files.map(({ file, payouts }: Json) => [file, payouts]),
    [1, 2, 3, 4, 5, 6].map((number) => [number, 1]),
  );
});
