import type { Html } from '../../pages/html.ts';
import type { SignInTexts } from '../../pages/sign_in.ts';
import type { MailTexts } from '../../program/partners/mails/texts.ts';

type Commission = 'pending' | 'approved' | 'due' | 'on_hold' | 'paid' | 'voided' | 'rejected';
type Payout = 'pending' | 'processing' | 'paid' | 'failed';

/** All that the portal says in one language. */
export interface PortalTexts {
  sign_in: Omit<SignInTexts, 'language' | 'skip'>;
  menu: Record<
    | 'home'
    | 'links'
    | 'coupons'
    | 'customers'
    | 'commissions'
    | 'payouts'
    | 'payout_method'
    | 'tax_form'
    | 'postbacks'
    | 'missing_sale'
    | 'notifications',
    string
  >;
  general: {
    portal: string;
    sign_out: string;
    skip: string;
    menu: string;
    save: string;
    saved: string;
    create: string;
    copy: string;
    copied: string;
    optional: string;
    next_page: string;
    previous_page: string;
    not_found: string;
    not_found_text: string;
    failed: string;
    try_again: string;
    too_many: string;
    changed: string;
    too_large: string;
    foreign_form: string;
    back: string;
    date: string;
    amount: string;
    status: string;
    required: string;
    invalid: string;
    invalid_url: string;
    taken: string;
    none_yet: string;
    steps: string;
    step_terms: string;
    step_payout_method: string;
    step_tax_form: string;
  };
  join: {
    title(program: string): string;
    intro(product: string): string;
    group(name: string): string;
    more: string;
    email: string;
    email_hint: string;
    first_name: string;
    last_name: string;
    company: string;
    website: string;
    country: string;
    language: string;
    terms_before: string;
    terms_after: string;
    terms_link: string;
    apply: string;
    sent_title: string;
    sent: string;
    received_title: string;
    received: string;
    paused_title: string;
    paused: string;
    invitation_title: string;
    invitation: string;
    other_address: string;
    member: string;
  };
  home: {
    pending_title: string;
    pending: string;
    balances: string;
    balance: Record<'pending' | 'due' | 'paid', string>;
    balance_hint: Record<'pending' | 'due' | 'paid', string>;
    next_payout(day: Html): Html;
    next_batch(day: Html, due: Html): Html;
    rate: string;
    rate_first: string;
    rate_renewal: string;
    no_rate: string;
    plot: string;
    as_table: string;
    day: string;
    no_earnings: string;
    your_link: string;
  };
  links: {
    url: string;
    short_url: string;
    label: string;
    label_hint: string;
    destination: string;
    destination_hint: string;
    elsewhere(host: string): string;
    value: string;
    value_hint: string;
    clicks: string;
    referrals: string;
    customers: string;
    new_link: string;
    none: string;
    most: string;
    created: string;
    qr: string;
    code: string;
    uses: string;
    active: string;
    inactive: string;
    no_coupons: string;
  };
  customers: {
    customer: string;
    since: string;
    none: string;
    masked: string;
    statuses: Record<'lead' | 'trial' | 'active' | 'cancelled' | 'refunded' | 'suspended', string>;
  };
  commissions: {
    statuses: Record<Commission, string>;
    kinds: Record<'sale' | 'bonus' | 'clawback', string>;
    kind: string;
    matures: string;
    why: string;
    none: string;
    base: string;
    rate: string;
    rule: string;
    sale_amount: string;
    deductions: string;
    refunded: string;
    of_net: string;
    of_amount: string;
    credited: string;
    credited_by: Record<'partner_id' | 'coupon' | 'customer' | 'click' | 'correction', string>;
    first_sale: string;
    renewal: string;
    month_before: string;
    in_payout: string;
    reason: string;
    reasons: Record<'sale_refunded' | 'sale_corrected' | 'partner_deleted' | 'voided_by_hand' | 'dispute', string>;
  };
  payouts: {
    statuses: Record<Payout, string>;
    due: string;
    paid: string;
    method: string;
    account: string;
    period: string;
    statement: string;
    commissions: string;
    none: string;
    waits: string;
    failed: string;
  };
  payout_method: {
    current: string;
    none: string;
    held(until: Html): Html;
    choose: string;
    warning: string;
    methods: MailTexts['methods'];
    fields: Record<
      | 'account_holder'
      | 'iban'
      | 'bic'
      | 'account_number'
      | 'routing_number'
      | 'email'
      | 'address'
      | 'network'
      | 'account_id',
      string
    >;
    account_id_hint: string;
    again: string;
    differs: string;
  };
  tax_form: {
    statuses: Record<'none' | 'submitted' | 'verified' | 'rejected', string>;
    file: string;
    file_hint: string;
    wrong_file: string;
    submit: string;
    required: string;
    private: string;
  };
  postbacks: {
    intro: string;
    url: string;
    url_hint: string;
    description: string;
    new_postback: string;
    none: string;
    most: string;
    secret: string;
    secret_hint: string;
    statuses: Record<'enabled' | 'disabled', string>;
    ping: string;
    pinged: string;
    rotate: string;
    enable: string;
    disable: string;
    delete: string;
    log: string;
    event: string;
    attempts: string;
    response: string;
    replay: string;
    replayed: string;
    delivery: Record<'pending' | 'delivered' | 'failed' | 'cancelled', string>;
    no_deliveries: string;
    body: string;
  };
  notifications: {
    first_referral: string;
    new_referral: string;
    payout_paid: string;
    language: string;
    sessions: string;
    browser: string;
    last_seen: string;
    end_others: string;
    this_one: string;
    ended: string;
  };
  terms: {
    title: string;
    text: string;
    read: string;
    accept: string;
    version: string;
    accepted(version: string): string;
    changed: string;
  };
  missing_sale: {
    intro: string;
    order: string;
    email: string;
    coupon: string;
    occurred: string;
    occurred_hint: string;
    note: string;
    one_of: string;
    send: string;
    sent: string;
    found: string;
    too_many: string;
    yours: string;
    none: string;
    statuses: Record<'open' | 'accepted' | 'rejected', string>;
  };
}
