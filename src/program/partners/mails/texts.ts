/** A mail before it is closed: its subject, one line, and its paragraphs. */
export interface Written {
  subject: string;
  paragraphs: string[];
}

/** The program that a mail is about, and where its partners sign in. */
interface About {
  program: string;
  portal_url: string;
}

interface Payment {
  program: string;
  amount: string;
  method: string;
  account: string;
  period: string;
  statement: string;
  is_attached: boolean;
  payout_id: string;
}

/** The mails to partners in one language. All are texts of the service: what an applicant typed is in none, since anybody can type any address. */
export interface MailTexts {
  greeting: string;
  /** The last line, of mails that can be switched off. */
  settings(url: string): string;
  terms(given: { url: string; version: string }): string;
  applied(given: About): Written;
  approved(given: About): Written;
  /** @param reason word for word */
  rejected(given: About & { reason: string }): Written;
  welcome(given: About): Written;
  first_referral(given: About): Written;
  /** @param count 1 or more */
  new_referrals(given: About & { count: number }): Written;
  /** @param day in the language */
  more_referrals(given: About & { count: number; day: string }): Written;
  /** @param rates the lines that say what was and what is */
  rate_changed(given: About & { rates: string[] }): Written;
  rates: { all: string; first: string; renewal: string; none: string };
  /** @param hint the last characters of the account · @param held_until a time in the language, UTC; null: payouts do not wait */
  payout_method_changed(given: About & { method: string; hint: string; held_until: string | null }): Written;
  sign_in(given: { program: string; url: string; minutes: number }): Written;
  /** @param account the last characters of the account, or '' · @param period days */
  payout_paid(given: Payment): Written;
  /** Between two days. */
  to: string;
  methods: Record<'bank_transfer' | 'wire' | 'crypto' | 'paypal' | 'wise' | 'stripe', string>;
}
