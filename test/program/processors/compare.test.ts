import t from 'tap';
import { processorBacklog } from '../../../src/program/processors/backlog.ts';
import { command } from '../../command_process.ts';
import { encryption_key, eventually, type Json, type Rail, sql, startRail } from '../../harness.ts';
import { openShop, type Shop } from '../../shop.ts';
import { startServer } from '../payouts/rails/attempt.ts';
import { deliver, type Webhook } from '../payouts/rails/provider_server.ts';
import { ChargebeeSite } from './chargebee_site.ts';
import { PaddleAccount } from './paddle_account.ts';
import { StripeAccount } from './stripe_account.ts';
import * as objects from './stripe_objects.ts';
import { openStripeShop } from './stripe_shop.ts';

const stripe = await startServer(t, new StripeAccount());
const paddle = await startServer(t, new PaddleAccount());
const chargebee = await startServer(t, new ChargebeeSite());
const provider_urls = { stripe: stripe.url, paddle: paddle.url, chargebee: chargebee.url };
const rail = await startRail({ provider_urls });

const day = new Date(Date.now() - 86_400_000).toISOString().slice(0, 10);
const noon = Date.parse(`${day}T12:00:00Z`) / 1000;
const noon_at = `${day}T12:00:00Z`;
let ticks = 0;

/** Compares the day before, as the night after it does. */
async function compare(rail: Rail): Promise<void> {
  await rail.tick('program/compare_processors', new Date(Date.now() - 60_000 + ++ticks * 1_000).toISOString());
  await eventually(
    async () =>
      (await rail.query(sql`select from core.jobs() j where j.state in ('ready', 'running', 'retrying')`)).length === 0,
    'all jobs to be done',
  );
}

/** As if the program had been connected for long. */
const connectedLongAgo = ({ program_id }: Pick<Shop, 'program_id'>) =>
  rail.query(
    sql`update program.processor set created_at = now() - interval '20 days' where program_id = ${program_id}`,
  );

const totalsOf = ({ program_id }: Pick<Shop, 'program_id'>): Promise<Json[]> =>
  rail.query<Json>(sql`
    select t.kind, t.currency, t.theirs, t.theirs_minor::int as theirs_minor, t.ours_minor::int as ours_minor,
      t.uncredited_minor::int as uncredited_minor, t.difference_minor::int as difference_minor, t.examples
    from program.processor_total t where t.program_id = ${program_id} order by t.kind, t.currency`);

const mailsOf = ({ merchant }: Pick<Shop, 'merchant'>): Promise<Json[]> =>
  rail.query<Json>(sql`
    select subject, text from core.outgoing_mail
    where organization_id = ${merchant.organization_id} and subject like '%differs from what is recorded%' order by id`);

const total = (kind: string, currency: string, [theirs, ...minor]: number[], examples: string[] = []) => {
  const [theirs_minor, ours_minor, uncredited_minor, difference_minor] = minor;
  return { kind, currency, theirs, theirs_minor, ours_minor, uncredited_minor, difference_minor, examples };
};

t.test('adds up a day at Stripe beside what is recorded, and tells of what is missing once', async (t) => {
  const shop = await openStripeShop(rail, stripe);
  await connectedLongAgo(shop);
  const click = await shop.click(shop.partner_of);
  const bound = objects.checkout('cs_1', { customer: 'cus_1', client_reference_id: click.id, created: noon });
  const paid = (nth: string, fields: Json) => {
    const { amount_paid: amount, currency } = fields;
    const charge = { amount, amount_captured: amount, currency, payment_intent: `pi_${nth}`, created: noon };
    stripe.put(objects.charge(`ch_${nth}`, charge));
    return [
      stripe.emit('invoice.paid', objects.invoice(`in_${nth}`, 'cus_1', { total: amount, created: noon, ...fields })),
      stripe.emit('invoice_payment.paid', objects.invoicePayment(`in_${nth}`, `pi_${nth}`, { created: noon })),
    ];
  };
  const lost = [
    ...paid('lost', { amount_paid: 2_500, currency: 'usd' }),
    stripe.emit('refund.created', objects.refund('re_lost', 'pi_1', { amount: 300, created: noon })),
  ];
  await shop.tell(
    stripe.emit('checkout.session.completed', bound),
    ...paid('1', { amount_paid: 9_900, currency: 'usd' }),
    ...paid('2', { amount_paid: 5_000, currency: 'jpy' }),
    ...paid('3', { amount_paid: 500_000, currency: 'ugx' }),
    stripe.emit(
      'charge.succeeded',
      objects.charge('ch_nobody', { customer: 'cus_nobody', amount: 700, amount_captured: 700, created: noon }),
    ),
    stripe.emit('refund.created', objects.refund('re_nobody', 'pi_of_ch_nobody', { amount: 200, created: noon })),
    stripe.emit('refund.created', objects.refund('re_1', 'pi_1', { amount: 900, created: noon })),
    stripe.emit(
      'charge.dispute.created',
      objects.dispute('dp_1', 'pi_2', { amount: 5_000, currency: 'jpy', created: noon }),
    ),
  );
  // An invoice that two payments paid.
  stripe.put(objects.charge('ch_4a', { amount_captured: 6_000, payment_intent: 'pi_4a', created: noon }));
  stripe.put(objects.charge('ch_4b', { amount_captured: 4_000, payment_intent: 'pi_4b', created: noon - 40 * 3_600 }));
  const parts = ['4a', '4b'].map((nth) =>
    stripe.emit('invoice_payment.paid', objects.invoicePayment('in_4', `pi_${nth}`, { created: noon })),
  );
  const whole = objects.invoice('in_4', 'cus_1', { amount_paid: 10_000, total: 10_000, created: noon });
  await shop.tell(...parts, stripe.emit('invoice.paid', whole));
  // Not on that day, inquiries, and what has not succeeded.
  stripe.put(objects.charge('ch_before', { created: noon - 86_400 }));
  stripe.put(objects.charge('ch_authorized', { captured: false, amount_captured: 0, created: noon }));
  stripe.put(objects.refund('re_pending', 'pi_1', { status: 'pending', created: noon }));
  stripe.put(objects.dispute('dp_inquiry', 'pi_1', { status: 'warning_needs_response', created: noon }));

  await compare(rail);
  const others = [
    total('charge', 'JPY', [1, 5_000, 5_000, 0, 0]),
    total('charge', 'UGX', [1, 5_000, 5_000, 0, 0]),
    total('charge', 'USD', [4, 19_100, 15_900, 700, 2_500], ['pi_lost']),
    total('dispute', 'JPY', [1, 5_000, 5_000, 0, 0]),
    total('refund', 'USD', [3, 1_400, 900, 200, 300], ['re_lost']),
  ];
  t.same(await totalsOf(shop), others);
  await compare(rail);
  const mails = await mailsOf(shop);
  t.equal(mails.length, 1, 'it is told once');
  t.match(mails[0], {
    subject: 'Stripe differs from what is recorded: Acme',
    text: /USD 191.00 at Stripe; USD 159.00 recorded, and USD 7.00 of nobody's. Among them: pi_lost/,
  });

  const gauge = async () =>
    (await processorBacklog.read(rail.store.database)).flatMap(({ gauge: _, labels, value }) =>
      'currency' in labels ? [{ ...labels, value }] : [],
    );
  t.same(await gauge(), [{ processor: 'stripe', currency: 'USD', value: 2_800 }]);
  const environment = { DATABASE_URL: rail.url, RAIL_ENCRYPTION_KEY: encryption_key.toString('base64') };
  const { stdout } = await command(['doctor', '--json'], environment);
  const line = JSON.parse(stdout).find(({ name }: Json) => name === 'program/processor_totals');
  t.match(line, {
    state: 'warning',
    text: new RegExp(`^2 daily totals of .*USD 25.00 of charges at stripe on ${day}`),
  });

  await shop.tell(...lost);
  await compare(rail);
  const after = await totalsOf(shop);
  t.ok(
    after.every(({ difference_minor, examples }) => difference_minor === 0 && examples.length === 0),
    JSON.stringify(after),
  );
  t.same(await gauge(), []);
  t.equal((await mailsOf(shop)).length, 1);
});

t.test('finds an amount that was changed here, and leaves out a sale that was deleted', async (t) => {
  const shop = await openStripeShop(rail, stripe);
  await connectedLongAgo(shop);
  const { id: rail_click } = await shop.click(shop.partner_of);
  const charge = (nth: string) =>
    objects.charge(`ch_${nth}`, {
      currency: 'eur',
      payment_intent: `pi_${nth}`,
      metadata: { rail_click },
      created: noon,
    });
  await shop.tell(...['changed', 'deleted'].map((nth) => stripe.emit('charge.succeeded', charge(nth))));
  const saleOf = async (nth: string) => (await shop.list('sales', `external_charge_id=pi_${nth}`))[0] as Json;
  await shop.merchant.patch(`/v1/sales/${(await saleOf('changed')).id}`, { amount_minor: 400 });
  await shop.merchant.delete(`/v1/sales/${(await saleOf('deleted')).id}`);
  await compare(rail);
  t.same(
    (await totalsOf(shop)).filter(({ currency }) => currency === 'EUR'),
    [total('charge', 'EUR', [2, 19_800, 400, 9_900, 9_500], ['pi_changed'])],
  );
});

/** A program that is connected to another processor, with a partner. */
async function open(processor: 'paddle' | 'chargebee', server: { credentials: Json }) {
  const shop = await openShop(rail);
  await shop.rule();
  const partner = await shop.partner();
  const path = `/v1/programs/${shop.program_id}/processors/${processor}`;
  await shop.merchant.request('PUT', path, { mode: 'test', credentials: server.credentials });
  await connectedLongAgo(shop);
  return {
    ...shop,
    partner,
    async tell(...webhooks: Webhook[]): Promise<void> {
      for (const webhook of webhooks) {
        const answer = await deliver(`${rail.address}/processors/${processor}/${shop.program_id}`, webhook);
        if (answer.status !== 200) throw new Error(`${answer.status} ${await answer.text()}`);
      }
      await eventually(async () => (await shop.list('processor_events', 'status=pending')).length === 0, 'all events');
    },
  };
}

t.test('adds up a day at Paddle', async (t) => {
  const shop = await open('paddle', paddle);
  await shop.customer({ partner_id: shop.partner.id, external_customer_id: 'ctm_1' });
  const sold = (id: string, grand_total: string, customer_id = 'ctm_1') => ({
    ...{ id, status: 'completed', customer_id, currency_code: 'EUR', origin: 'web', custom_data: null },
    ...{ billed_at: noon_at, created_at: noon_at, subscription_id: null, discount_id: null },
    details: { totals: { tax: '0', total: grand_total, grand_total, fee: '0' }, line_items: [] },
  });
  const adjusted = (id: string, transaction_id: string, action: string, amount: string) => ({
    ...{ id, transaction_id, action, status: 'approved', customer_id: 'ctm_1', currency_code: 'EUR' },
    ...{ totals: { total: amount }, reason: 'error', created_at: noon_at },
  });
  const told = [
    paddle.emit('transaction.completed', sold('txn_1', '4000'), noon_at),
    paddle.emit('transaction.completed', sold('txn_2', '3000'), noon_at),
    paddle.emit('transaction.completed', sold('txn_3', '500', 'ctm_nobody'), noon_at),
    paddle.emit('adjustment.created', adjusted('adj_1', 'txn_1', 'refund', '1500'), noon_at),
    paddle.emit('adjustment.created', adjusted('adj_2', 'txn_2', 'chargeback', '3000'), noon_at),
  ];
  await shop.tell(...told.map((event) => paddle.webhook(event)));
  paddle.put(sold('txn_lost', '1200'));
  paddle.put(adjusted('adj_credit', 'txn_1', 'credit', '100'));
  await compare(rail);
  t.same(await totalsOf(shop), [
    total('charge', 'EUR', [4, 8_700, 7_000, 500, 1_200], ['txn_lost']),
    total('dispute', 'EUR', [1, 3_000, 3_000, 0, 0]),
    total('refund', 'EUR', [1, 1_500, 1_500, 0, 0]),
  ]);
});

t.test('adds up a day at Chargebee', async (t) => {
  const shop = await open('chargebee', chargebee);
  await shop.customer({ partner_id: shop.partner.id, external_customer_id: 'cust_1' });
  const moved = (id: string, type: string, amount: number, fields: Json = {}) => ({
    transaction: {
      ...{ id, type, amount, status: 'success', customer_id: 'cust_1', currency_code: 'USD', date: noon },
      ...fields,
    },
    customer: { id: 'cust_1' },
  });
  const linked_invoices = [
    { invoice_id: 'inv_1', applied_amount: 6_000 },
    { invoice_id: 'inv_2', applied_amount: 500 },
  ];
  const told = [
    chargebee.emit('payment_succeeded', moved('txn_1', 'payment', 6_500, { linked_invoices }), { occurred_at: noon }),
    chargebee.emit('payment_refunded', moved('txn_2', 'refund', 1_000, { refunded_txn_id: 'txn_1' }), {
      occurred_at: noon,
    }),
    chargebee.emit('payment_succeeded', moved('txn_3', 'payment', 800), { occurred_at: noon }),
    chargebee.emit(
      'transaction_created',
      moved('txn_4', 'payment_reversal', 800, { reference_transaction_id: 'txn_3' }),
      { occurred_at: noon },
    ),
  ];
  await shop.tell(...told.map((event) => chargebee.webhook(event)));
  chargebee.emit('payment_succeeded', moved('txn_lost', 'payment', 99));
  chargebee.emit('payment_succeeded', moved('txn_later', 'payment', 99, { date: noon + 86_400 }));
  await compare(rail);
  t.same(await totalsOf(shop), [
    total('charge', 'USD', [4, 7_399, 7_300, 0, 99], ['txn_lost']),
    total('dispute', 'USD', [1, 800, 800, 0, 0]),
    total('refund', 'USD', [1, 1_000, 1_000, 0, 0]),
  ]);
});
