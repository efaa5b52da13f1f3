import type { MailTexts } from './texts.ts';

export const en: MailTexts = {
  greeting: 'Hello,',
  settings: (url) => `Choose which emails you receive: ${url}`,
  terms: ({ url, version }) => `The terms of the program, version ${version}: ${url}`,
  applied: ({ program, portal_url }) => ({
    subject: `Your application to ${program}`,
    paragraphs: [
      `We have received your application to the partner program of ${program}. You will get an email when there is a decision.`,
      `Follow its status: ${portal_url}`,
    ],
  }),
  approved: ({ program, portal_url }) => ({
    subject: `Your application to ${program} was approved`,
    paragraphs: [
      `Your application was approved: you are now a partner of ${program}.`,
      `Sign in to get your links and to say how you want to be paid: ${portal_url}`,
    ],
  }),
  rejected: ({ program, reason }) => ({
    subject: `Your application to ${program} was declined`,
    paragraphs: [`Your application to the partner program of ${program} was declined. The reason:`, reason],
  }),
  welcome: ({ program, portal_url }) => ({
    subject: `Welcome to the partner program of ${program}`,
    paragraphs: [
      `You are now a partner of ${program}.`,
      `Sign in to get your links and to say how you want to be paid: ${portal_url}`,
    ],
  }),
  first_referral: ({ program, portal_url }) => ({
    subject: `Your first referral for ${program}`,
    paragraphs: [`${program} has its first customer through you.`, `Your referrals: ${portal_url}`],
  }),
  new_referrals: ({ program, count, portal_url }) => ({
    subject: count === 1 ? `A new referral for ${program}` : `${count} new referrals for ${program}`,
    paragraphs: [
      count === 1 ? `${program} has a new customer through you.` : `${program} has ${count} new customers through you.`,
      `Your referrals: ${portal_url}`,
    ],
  }),
  more_referrals: ({ program, count, day, portal_url }) => ({
    subject: `${count} more referrals for ${program} on ${day}`,
    paragraphs: [
      `Besides those that you were emailed about, ${program} had ${count} more new customers through you on ${day} (UTC).`,
      `Your referrals: ${portal_url}`,
    ],
  }),
  rate_changed: ({ program, rates, portal_url }) => ({
    subject: `Your commission rate at ${program} has changed`,
    paragraphs: [
      `The rate at which you earn commissions at ${program} has changed. It applies to payments from now on; what you have earned is unchanged.`,
      rates.join('\n'),
      `Your commissions: ${portal_url}`,
    ],
  }),
  rates: {
    all: 'All payments',
    first: 'First payments of customers',
    renewal: 'Later payments',
    none: 'no commission',
  },
  payout_method_changed: ({ program, method, hint, held_until, portal_url }) => ({
    subject: `Your payout method at ${program} was changed`,
    paragraphs: [
      `${program} now pays you by ${method}, to the account that ends in ${hint}.`,
      ...(held_until === null ? [] : [`Nothing is paid to it before ${held_until} (UTC).`]),
      `If you did not change it, sign in and correct it now, and tell the company that runs the program: ${portal_url}`,
    ],
  }),
  sign_in: ({ program, url, minutes }) => ({
    subject: `Sign in to ${program}`,
    paragraphs: [
      `Open this page to sign in to the partner portal of ${program}:`,
      url,
      `The link works once, within ${minutes} minutes. If you did not ask for it, ignore this email: nobody can sign in without it.`,
    ],
  }),
  payout_paid: ({ program, amount, method, account, period, statement, is_attached, payout_id }) => ({
    subject: `Your payout of ${amount} from ${program}`,
    paragraphs: [
      `${program} has paid you ${amount}.`,
      [
        `Method: ${method}${account && `, account ends in ${account}`}`,
        `Period: ${period} (UTC)`,
        `Statement: ${statement}${is_attached ? ', attached' : ''}`,
        `Payout: ${payout_id}`,
      ].join('\n'),
    ],
  }),
  to: 'to',
  methods: {
    bank_transfer: 'bank transfer',
    wire: 'wire transfer',
    crypto: 'cryptocurrency',
    paypal: 'PayPal',
    wise: 'Wise',
    stripe: 'Stripe',
  },
};
