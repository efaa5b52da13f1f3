import type { Vault } from '../encryption/vault.ts';

/** The services that a handler may need besides its transaction. */
export interface Services {
  vault: Vault;
  /** True if webhook endpoints may be at private addresses (development and tests only). */
  allow_private_addresses: boolean;
  /** The URL of the service as seen from outside, without a slash at the end. */
  base_url: string;
  /** Host names of this service: no webhook endpoint may name them. */
  own_hosts: string[];
  /** Base URLs of payout and search providers, by their names, where others than the providers' own are set. */
  provider_urls: Readonly<Record<string, string>>;
  /** The credentials with which organizations without their own ask search providers, by the names of the providers. */
  search_credentials: Readonly<Record<string, Readonly<Record<string, string>>>>;
  /** The wait between two requests of visits to a host. */
  visit_interval_ms: number;
  /** The time of a visit to a page, and of each step of a login that is tried, where it is longer than usual: tests share a busy machine. */
  patience_ms?: { visit: number; login: number } | undefined;
  /** Private addresses that pages may be visited at all the same: those of servers that a test runs. */
  trusted_addresses?: readonly string[] | undefined;
  /** Hosts that endpoints of team chats may be at besides those of the tools themselves. */
  chat_hosts: string[];
  /** The name servers that resolve hosts of webhook endpoints; the system's when left out. */
  name_servers?: string[] | undefined;
  /** True if everything outside is the demo's own (RAIL_DEMO_MAIL): then no public URL is needed to send outreach. */
  is_demo?: boolean | undefined;
  /** Undefined where no SMTP server is set: mail is logged then. */
  mailer: Mailer | undefined;
  /** The publishable key of the page at `/demo`: only `rail start` has one. */
  demo_key?: string | undefined;
  /** The organization whose owners and admins run the service. Undefined: nobody does it in the dashboard. */
  operator_organization?: string | undefined;
  /** `default_retention` when left out. */
  retention?: Retention | undefined;
}

/** The retention of growing data, in days. */
export interface Retention {
  /** Events, deliveries and their attempts. */
  event_days: number;
  /** Mail to people of organizations. */
  mail_days: number;
  /** Runs of schedules. */
  run_days: number;
  /** Entries of the audit log. */
  audit_days: number;
  /** Clicks that led to no customer; null: for ever. */
  click_days: number | null;
  /** Imports of prospects that have ended. */
  import_days: number;
  /** Results of searches, visits of scans, and pages that were fetched. */
  search_days: number;
}

export const default_retention: Retention = {
  ...{ event_days: 30, mail_days: 90, run_days: 90, audit_days: 400 },
  ...{ click_days: null, import_days: 90, search_days: 365 },
};

export interface Mail {
  organization_id: string;
  id: string;
  recipient: string;
  /** One line. */
  subject: string;
  text: string;
  html: string | null;
  attachment: Attachment | null;
  created_at: string;
}

/** A file that goes with a mail. */
export interface Attachment {
  name: string;
  media_type: string;
  content: Buffer;
}

/** Hands a mail to the SMTP server. @throws MailNotSent */
export type Mailer = (mail: Mail, cut_off: AbortSignal) => Promise<void>;
