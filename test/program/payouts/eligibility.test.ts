import t from 'tap';
import { eventually, type Json, sql, startRail } from '../../harness.ts';
import { openShop } from '../../shop.ts';
import { bank, batchOf, bonus, payee, setRail } from './fixture.ts';

const rail = await startRail();

const american = {
  method: 'bank_transfer',
  details: { account_holder: 'Ada Lovelace', account_number: '123456789', routing_number: '021000021' },
};
const paypal = { method: 'paypal', details: { email: 'ada@paypal.example.com' } };
const wallet = {
  method: 'crypto',
  details: { address: '0x52908400098527886E0F7030069857D2E4169EE7', network: 'ethereum' },
};
const every_method = { payout_methods: ['bank_transfer', 'wire', 'paypal', 'crypto'], min_payout_minor: 1 };

const typesOf = (events: { type: string }[]) => events.map(({ type }) => type).filter((type) => /^payout/.test(type));

t.test('a preview and a batch check an amount as sending does', async (t) => {
  const shop = await openShop(rail, every_method);
  const cases = [
    { what: 'EUR to an account in the United States', by: american, currency: 'EUR', amount: 6000, payable: false },
    { what: 'USD to an account in the United States', by: american, currency: 'USD', amount: 6000, payable: true },
    {
      what: 'a wire of EUR to the same',
      by: { ...american, method: 'wire' },
      currency: 'EUR',
      amount: 6000,
      payable: true,
    },
    { what: 'EUR to an IBAN', by: bank, currency: 'EUR', amount: 99_999_999_999, payable: true },
    { what: 'more EUR than SEPA transfers', by: bank, currency: 'EUR', amount: 100_000_000_000, payable: false },
    { what: 'a currency that PayPal does not have', by: paypal, currency: 'KWD', amount: 6000, payable: false },
    { what: 'any currency to a wallet', by: wallet, currency: 'KWD', amount: 6000, payable: true },
  ];
  const ids: string[] = [];
  for (const { by, currency, amount } of cases) {
    const partner = await payee(shop, [], { payout_method: by });
    await bonus(shop, partner, amount, { currency });
    ids.push(partner.id);
  }
  const preview = await shop.merchant.post('/v1/payout_batches', { program_id: shop.program_id, preview: true });
  await shop.events();
  const batch = await batchOf(shop, { due_at: new Date().toISOString() });
  const events = await shop.events();
  const payouts = await shop.list('payouts');
  for (const [nth, { what, payable }] of cases.entries()) {
    const id = ids[nth];
    const of = (list: Json[]) => list.filter(({ partner_id }) => partner_id === id).length;
    const told = typesOf(events.filter(({ data }) => data.partner_id === id));
    t.same([of(preview.payouts), of(preview.unpaid)], payable ? [1, 0] : [0, 1], what);
    t.same(told, payable ? ['payout.created', 'payout.due'] : ['payout.not_eligible'], what);
    t.equal(of(payouts), payable ? 1 : 0, what);
  }
  t.same(batch.progress.not_eligible, [{ reason: 'currency_not_supported', count: 3 }]);
  t.same(preview.not_eligible, batch.progress.not_eligible);
});

t.test('payout.due is not told of what is not eligible any more, and is told once that is mended', async (t) => {
  const shop = await openShop(rail, { currency: 'EUR', min_payout_minor: 1000 });
  const at = (hours: number) => new Date(Date.now() + hours * 3_600_000).toISOString();
  const [suspended, american_now, small, fine] = [
    await payee(shop, [6000]),
    await payee(shop, [6000]),
    await payee(shop, [2000]),
    await payee(shop, [6000]),
  ];
  await batchOf(shop, { due_at: at(1) });
  await shop.merchant.request('PATCH', `/v1/partners/${suspended.id}`, { status: 'suspended' });
  await shop.merchant.request('PUT', `/v1/partners/${american_now.id}/payout_method`, american);
  await shop.merchant.request('PATCH', `/v1/programs/${shop.program_id}`, { min_payout_minor: 2001 });
  await shop.events();
  const told: (string | null)[][] = [];
  const tellAt = async (hours: number, count: number) => {
    told.length = 0;
    await rail.tick('program/find_due_payouts', at(hours));
    await eventually(async () => {
      for (const { type, data } of await shop.events()) {
        if (/^payout\.(due|not)/.test(type)) told.push([type, data.partner_id, data.reason ?? null]);
      }
      return told.length >= count;
    }, 'what is told');
    return told.toSorted();
  };
  t.same(
    await tellAt(2, 4),
    [
      ['payout.due', fine.id, null],
      ['payout.not_eligible', american_now.id, 'currency_not_supported'],
      ['payout.not_eligible', small.id, 'below_minimum'],
      ['payout.not_eligible', suspended.id, 'partner_suspended'],
    ].toSorted(),
  );
  await shop.merchant.request('PUT', `/v1/partners/${american_now.id}/payout_method`, bank);
  await shop.merchant.request('PATCH', `/v1/partners/${suspended.id}`, { status: 'active' });
  t.same(await tellAt(4, 2), [american_now.id, suspended.id].map((id) => ['payout.due', id, null]).toSorted());
  await shop.merchant.request('PATCH', `/v1/programs/${shop.program_id}`, { min_payout_minor: 1 });
  t.same(await tellAt(6, 1), [['payout.due', small.id, null]], 'each reason, and what is due, is told once');
});

t.test(
  'a minimum that was raised since holds what is sent as it holds payout.due, whichever job comes first',
  async (t) => {
    const told = ['payout.due', 'payout.not_eligible'];
    for (const jobs of [
      ['program/find_due_payouts', 'program/send_due_payouts'],
      ['program/send_due_payouts', 'program/find_due_payouts'],
    ]) {
      const shop = await openShop(rail, { auto_payouts_enabled: true, min_payout_minor: 1 });
      const { merchant, program_id } = shop;
      await setRail(rail, shop, 'bank_transfer', { name: 'Acme', iban: 'DE89370400440532013000', bic: 'COBADEFFXXX' });
      const [small, fine] = [await payee(shop, [2000]), await payee(shop, [6000])];
      await batchOf(shop, { due_at: new Date(Date.now() + 86_400_000).toISOString() });
      await merchant.request('PATCH', `/v1/programs/${program_id}`, { min_payout_minor: 5000 });
      await rail.query(sql`update program.payout set due_at = now() where program_id = ${program_id}`);
      const payoutOf = async ({ id }: Json): Promise<Json> =>
        (await shop.list('payouts', `partner_id=${id}`)).at(0) as Json;
      await shop.events();
      for (const [nth, job] of jobs.entries()) {
        await rail.tick(job, new Date().toISOString());
        const sent = nth === 1 || job === 'program/send_due_payouts';
        await eventually(async () => !sent || (await payoutOf(fine)).status === 'processing', 'what is due to be sent');
        await eventually(
          async () =>
            (await merchant.get(`/v1/payout_batches/${(await payoutOf(small)).batch_id}`)).not_sent.length === 1,
          'the rest to be held',
        );
      }
      const of_small = (await shop.events()).filter(({ data }) => data.partner_id === small.id);
      t.match(
        of_small.filter(({ type }) => told.includes(type)),
        [{ type: 'payout.not_eligible', data: { reason: 'below_minimum' } }],
        jobs.join(', '),
      );
      const held = await payoutOf(small);
      t.match(
        await merchant.request('POST', `/v1/payouts/${held.id}/send`),
        { status: 409 },
        'by hand, it is the same',
      );
      const { id } = await payoutOf(fine);
      await merchant.post(`/v1/payouts/${id}/mark_paid`);
      await merchant.post(`/v1/payouts/${id}/mark_returned`);
      await merchant.request('PATCH', `/v1/programs/${program_id}`, { min_payout_minor: 7000 });
      t.match(await merchant.post(`/v1/payouts/${id}/retry`), { status: 'processing' }, 'what came back is owed');
    }
  },
);

t.test('a payout that a refund takes below the minimum is given up before it is due', async (t) => {
  const shop = await openShop(rail, { holding_period_days: 0, min_payout_minor: 5000, min_payouts: { EUR: 700 } });
  await shop.rule();
  const ada = await payee(shop, []);
  const [kept, refunded] = [
    await shop.sale({ partner_id: ada.id, amount_minor: 5000 }),
    await shop.sale({ partner_id: ada.id, amount_minor: 25_000 }),
  ];
  await batchOf(shop, { due_at: new Date(Date.now() + 60_000).toISOString() });
  t.match(await shop.list('payouts'), [{ amount_minor: 6000 }]);
  await shop.events();
  await shop.refund(refunded);
  t.same(typesOf(await shop.events()), ['payout.deleted']);
  await rail.tick('program/find_due_payouts', new Date(Date.now() + 3_600_000).toISOString());
  t.same(typesOf(await shop.events()), [], 'payout.due is not told');
  t.match(await shop.commissionsOf(kept), [{ status: 'due', payout_id: null }]);

  const grace = await payee(shop, [5000]);
  await shop.merchant.request('PATCH', `/v1/partners/${grace.id}`, { min_payout_minor: 3000 });
  const sale = await shop.sale({ partner_id: grace.id, amount_minor: 10_000 });
  await batchOf(shop);
  await shop.refund(sale, { amount_minor: 9000 });
  const of_grace = await shop.list('payouts', `partner_id=${grace.id}`);
  t.match(of_grace, [{ amount_minor: 5000 }], "the partner's own minimum holds");
});

t.test('a payment that came back leaves no reference behind', async (t) => {
  const shop = await openShop(rail, { min_payout_minor: 1 });
  const { merchant } = shop;
  await setRail(rail, shop, 'bank_transfer', { name: 'Acme', iban: 'DE89370400440532013000', bic: 'COBADEFFXXX' });
  await payee(shop, [6000]);
  await batchOf(shop);
  const [{ id }] = (await shop.list('payouts')) as [Json];
  const give_back = async () => {
    const [{ id: attempt, batch_id }] = (await rail.query<Json>(sql`
      select a.id, p.batch_id from program.payout_attempt a join program.payout p on p.id = a.payout_id
      where a.payout_id = ${id} order by a.number desc limit 1`)) as [Json];
    const returned = `<Document><BkToCstmrDbtCdtNtfctn><Ntfctn><Acct><Id><IBAN>DE89370400440532013000</IBAN></Id></Acct><Ntry>
      <Amt Ccy="USD">60.00</Amt><CdtDbtInd>CRDT</CdtDbtInd><Sts><Cd>BOOK</Cd></Sts><BookgDt><Dt>2026-11-02</Dt></BookgDt><NtryDtls><TxDtls>
      <Refs><EndToEndId>${attempt.replace('_', '-')}</EndToEndId></Refs><Amt Ccy="USD">60.00</Amt><CdtDbtInd>CRDT</CdtDbtInd>
      <RtrInf><Rsn><Cd>AC04</Cd></Rsn></RtrInf></TxDtls></NtryDtls></Ntry></Ntfctn></BkToCstmrDbtCdtNtfctn></Document>`;
    const { status } = await merchant.request('POST', `/v1/payout_batches/${batch_id}/statuses`, returned, {
      'Content-Type': 'application/xml',
    });
    t.equal(status, 200);
  };
  const send = async (how: string) => {
    t.match(await merchant.post(`/v1/payouts/${id}/${how}`), { status: 'processing', external_id: null });
  };
  await send('send');
  await merchant.post(`/v1/payouts/${id}/mark_paid`, { external_id: 'BANKREF1' });
  await eventually(
    async () => (await merchant.request('GET', `/v1/payouts/${id}/statement`)).status === 200,
    'the number',
  );
  await give_back();
  t.match(await merchant.get(`/v1/payouts/${id}`), { status: 'failed', error_code: 'returned', external_id: null });
  t.equal((await merchant.get(`/v1/payouts/${id}/statement`)).payout.external_id, null, 'the statement says the same');
  await send('retry');
  await shop.events();
  t.match(await merchant.post(`/v1/payouts/${id}/mark_paid`), { status: 'paid', external_id: null });
  const [paid] = (await shop.events()).filter(({ type }) => type === 'payout.paid');
  t.equal(paid?.data.external_id ?? null, null);
});
