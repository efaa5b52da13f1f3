/** What a request can set of an inbox. */
import { z } from 'zod';
import { email, text, timeZone } from '../../core/values/fields.ts';

export const oauth_providers = ['google', 'microsoft'] as const;
export type OAuthProvider = (typeof oauth_providers)[number];
const securities = ['tls', 'starttls'] as const;

/** How a server is reached, and as whom. */
export const Server = z.object({
  host: text.describe('The host name of the server.'),
  port: z.int().describe('The port of the server.'),
  security: z.enum(securities).describe('`tls`: encrypted from the start. `starttls`: encrypted by STARTTLS.'),
  username: text.describe('The user name of the login.'),
});
export type Server = z.infer<typeof Server>;

const host = z
  .string()
  .trim()
  .toLowerCase()
  .regex(/^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$|^\[?[0-9a-f:]+\]?$/, 'must be a host name, such as smtp.example.com')
  .max(253);
const server = (port: number) =>
  z.strictObject({
    host,
    port: z.int().min(1).max(65_535).default(port),
    security: z.enum(securities).describe('`tls` on ports 465 and 993, `starttls` on 587 and 143.'),
    username: text.min(1).max(320),
    password: text.min(1).max(1024),
  });

export const smtp = server(465).describe('The server that sends. Its login is tried, and the password encrypted.');
export const imap = server(993).describe('The server that receives. Its login is tried, and the password encrypted.');
export const oauth = z
  .strictObject({
    provider: z.enum(oauth_providers),
    client_id: text.min(1).max(500),
    client_secret: text.min(1).max(500),
    refresh_token: text.min(1).max(4096),
  })
  .describe('OAuth 2, instead of passwords: your own client at the provider, and a refresh token with access to mail.');

const daily_limit = z.int().min(1).max(500).describe('The most emails that are sent in a day, in `timezone`.');
const ramp = z
  .strictObject({ start: z.int().min(1).max(500), step: z.int().min(1).max(100) })
  .nullable()
  .describe('Starts with `start` emails a day, and sends `step` more on each day after one that sent. Null: no ramp.');
const gap = z.int().min(0).max(86_400);

export const settings = {
  from_name: text
    .min(1)
    .max(200)
    .regex(/^[^\p{Cc}]*$/u, 'must not contain line breaks or control characters'),
  daily_limit,
  ramp,
  min_gap_s: gap.describe('The least time between two emails, in seconds.'),
  max_gap_s: gap.describe('The most time between two emails that are due, in seconds.'),
  reply_to: email.nullable().describe('Where replies go. Null: to the inbox itself, where they are read.'),
  signature: text.max(5000).nullable().describe('Text at the end of each email.'),
  timezone: timeZone.describe('The IANA time zone of the days that `daily_limit` counts.'),
};

export const defaults = {
  ...{ daily_limit: 40, ramp: { start: 10, step: 2 }, min_gap_s: 90, max_gap_s: 300 },
  ...{ reply_to: null, signature: null, timezone: 'UTC' },
};

/** The servers of the providers whose logins are OAuth 2. */
export const provider_servers: Record<OAuthProvider, Record<'smtp' | 'imap', Omit<Server, 'username'>>> = {
  google: {
    smtp: { host: 'smtp.gmail.com', port: 465, security: 'tls' },
    imap: { host: 'imap.gmail.com', port: 993, security: 'tls' },
  },
  microsoft: {
    smtp: { host: 'smtp.office365.com', port: 587, security: 'starttls' },
    imap: { host: 'outlook.office365.com', port: 993, security: 'tls' },
  },
};

/** A server of an inbox with OAuth 2, where it is not the provider's usual one. */
export const oauth_server = z
  .strictObject({ host, port: z.int().min(1).max(65_535), security: z.enum(securities) })
  .describe("With `oauth`: another server than the provider's.");
