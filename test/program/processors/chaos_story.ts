import type { Json } from '../../harness.ts';
import type { StripeAccount } from './stripe_account.ts';
import * as objects from './stripe_objects.ts';

/** Draws the same numbers for a seed. */
export function drawing(seed: number): (below: number) => number {
  let state = seed >>> 0;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

export function shuffled<Item>(items: Item[], draw: (below: number) => number): Item[] {
  const mixed = [...items];
  for (let last = mixed.length - 1; last > 0; last--) {
    const other = draw(last + 1);
    [mixed[last], mixed[other]] = [mixed[other] as Item, mixed[last] as Item];
  }
  return mixed;
}

export interface Story {
  /** In the order in which they happened. */
  events: Json[];
  /** The amounts that must have been sold and given back, by charge. */
  charges: Map<string, { amount: number; refunded: number }>;
}

const day = 86_400;

/**
 * The life of customers at Stripe over some periods of two days: trials, invoices with their charges, refunds that succeed or fail, disputes, payments without an
 * invoice, and the end of subscriptions. Every seventh customer was brought by nobody.
 * @param clicks of customers, by their number
 * @param since Unix seconds: all happens within 28 days from then, which is what Stripe remembers
 */
export function storyOf(
  stripe: StripeAccount,
  clicks: string[],
  { seed, since }: { seed: number; since: number },
): Story {
  const events: Json[] = [];
  const charges: Story['charges'] = new Map();
  clicks.forEach((click, nth) => {
    new Customer(
      stripe,
      { click: nth % 7 === 6 ? null : click, nth, since, draw: drawing(seed * 10_007 + nth) },
      events,
      charges,
    ).live();
  });
  events.sort((one, other) => one.created - other.created);
  return { events, charges };
}

class Customer {
  readonly #stripe: StripeAccount;
  readonly #click: string | null;
  readonly #nth: number;
  readonly #draw: (below: number) => number;
  readonly #events: Json[];
  readonly #charges: Story['charges'];
  readonly #id: string;
  #now: number;
  #made = 0;

  constructor(
    stripe: StripeAccount,
    { click, nth, since, draw }: { click: string | null; nth: number; since: number; draw: (below: number) => number },
    events: Json[],
    charges: Story['charges'],
  ) {
    this.#stripe = stripe;
    this.#click = click;
    this.#nth = nth;
    this.#draw = draw;
    this.#events = events;
    this.#charges = charges;
    this.#id = `cus_${nth}`;
    this.#now = since + draw(10 * day);
  }

  live(): void {
    const email = `customer${this.#nth}@customer.example.com`;
    const who = { customer_details: { email, name: 'Grace Hopper' }, customer: this.#id };
    const subscription = `sub_${this.#nth}`;
    this.#tell('customer.created', objects.customer(this.#id, { email, name: 'Grace Hopper' }));
    if (this.#draw(6) === 0) this.#buyOnce(who);
    else this.#subscribe(who, subscription, email);
  }

  #subscribe(who: Json, subscription: string, email: string): void {
    const bound = { ...who, subscription, client_reference_id: this.#click };
    this.#tell('checkout.session.completed', objects.checkout(this.#next('cs'), bound));
    const statusIs = (type: string, status: string) =>
      this.#tell(`customer.subscription.${type}`, objects.subscription(subscription, this.#id, { status }));
    const in_trial = this.#draw(3) === 0;
    statusIs('created', in_trial ? 'trialing' : 'active');
    if (in_trial) {
      this.#tell('invoice.paid', objects.invoice(this.#next('in'), this.#id, { amount_paid: 0, total: 0 }));
      this.#pass(2 * day);
      statusIs('updated', 'active');
    }
    const periods = 1 + this.#draw(4);
    for (let period = 0; period < periods; period++) {
      this.#payInvoice(subscription, email);
      this.#pass(2 * day);
    }
    if (this.#draw(3) === 0) statusIs('deleted', 'canceled');
  }

  #buyOnce(who: Json): void {
    const payment = this.#next('pi');
    const amount = 100 + this.#draw(50_000);
    const bought = { mode: 'payment', payment_intent: payment, amount_total: amount, client_reference_id: this.#click };
    this.#tell('checkout.session.completed', objects.checkout(this.#next('cs'), { ...who, ...bought }));
    this.#tell('charge.succeeded', this.#charge(payment, amount));
    this.#sold(payment, amount);
    this.#comeBack(payment, payment, amount);
  }

  #payInvoice(subscription: string, customer_email: string): void {
    const [id, payment] = [this.#next('in'), this.#next('pi')];
    const amount = 100 + this.#draw(50_000);
    const total_taxes = [{ amount: Math.floor(amount / (5 + this.#draw(10))) }];
    const fields = {
      amount_paid: amount,
      total: amount,
      total_taxes,
      customer_email,
      ...objects.ofSubscription(subscription),
    };
    this.#tell('invoice.paid', objects.invoice(id, this.#id, { ...fields, created: this.#now }));
    this.#tell('invoice_payment.paid', objects.invoicePayment(id, payment));
    this.#tell('charge.succeeded', this.#charge(payment, amount));
    this.#sold(id, amount);
    this.#comeBack(id, payment, amount);
  }

  /** A refund, a refund that fails, or a dispute; mostly nothing. */
  #comeBack(charge: string, payment: string, amount: number): void {
    this.#pass(day / 2);
    const part = 1 + this.#draw(amount);
    const [id, created] = [this.#next('re'), this.#now];
    const refundIs = (type: string, status: string, of: number) =>
      this.#tell(`refund.${type}`, objects.refund(id, payment, { status, amount: of, created }));
    const fate = this.#draw(8);
    if (fate === 0) {
      refundIs('created', 'pending', part);
      this.#pass(3_600);
      refundIs('updated', 'succeeded', part);
      this.#refunded(charge, part);
    } else if (fate === 1) {
      refundIs('created', 'succeeded', part);
      this.#pass(3_600);
      refundIs('failed', 'failed', part);
    } else if (fate === 2) {
      this.#dispute(charge, payment, amount);
    } else if (fate === 3) {
      refundIs('created', 'succeeded', amount);
      this.#refunded(charge, amount);
    }
  }

  #dispute(charge: string, payment: string, amount: number): void {
    const id = this.#next('dp');
    const opened = this.#now;
    const disputeIs = (type: string, status: string) =>
      this.#tell(`charge.dispute.${type}`, objects.dispute(id, payment, { status, amount, created: opened }));
    disputeIs('created', 'needs_response');
    if (this.#draw(4) === 0) return;
    this.#pass(day);
    const outcome = this.#draw(2) === 0 ? 'won' : 'lost';
    disputeIs('closed', outcome);
    if (outcome === 'lost') this.#refunded(charge, amount);
  }

  #charge(payment: string, amount: number): Json {
    const fields = { customer: this.#id, payment_intent: payment, amount, amount_captured: amount };
    return objects.charge(`ch_of_${payment}`, { ...fields, created: this.#now });
  }

  #sold(charge: string, amount: number): void {
    if (this.#click !== null) this.#charges.set(charge, { amount, refunded: 0 });
  }

  #refunded(charge: string, amount: number): void {
    const sold = this.#charges.get(charge);
    if (sold) sold.refunded += amount;
  }

  #pass(seconds: number): void {
    this.#now += 1 + this.#draw(seconds);
  }

  #next(prefix: string): string {
    return `${prefix}_${this.#nth}_${++this.#made}`;
  }

  #tell(type: string, object: Json): void {
    this.#now += this.#draw(2);
    const created = object.created === objects.at ? this.#now : object.created;
    const id = `evt_${this.#nth}_${++this.#made}`;
    this.#events.push(this.#stripe.emit(type, { ...object, created }, { id, created: this.#now }));
  }
}
