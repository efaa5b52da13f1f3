/** The settings of an inbox that a request can change. */
import { z } from 'zod';
import { email, oneLine, text } from '../../core/values/fields.ts';
import { timeZone } from '../../core/values/time_zone.ts';

export const oauth_providers = ['google', 'microsoft'] as const;
export type OAuthProvider = (typeof oauth_providers)[number];
export const oauth_provider = z
  .enum(oauth_providers)
  .describe('`google`: Gmail and Google Workspace. `microsoft`: Microsoft 365 and Outlook.');
const securities = ['tls', 'starttls'] as const;

const security = z.enum(securities).describe('`tls`: encrypted from the start. `starttls`: encrypted by STARTTLS.');

/** The address of a server, and the user who logs in. */
export const Server = z.object({
  host: text.describe('The host name of the server.'),
  port: z.int().describe('The port of the server.'),
  security,
  username: text.describe('The user name of the login.'),
});
export type Server = z.infer<typeof Server>;

const host = z
  .string()
  .trim()
  .toLowerCase()
  .regex(/^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$|^\[?[0-9a-f:]+\]?$/, 'must be a host name, such as smtp.example.com')
  .max(253)
  .describe('The host name of the server, or its address.');
/** The ports that a server may be at. */
export const mail_ports = { smtp: [25, 465, 587, 2525], imap: [143, 993] };
/** The port of a server that is given without one. */
export const default_ports = { smtp: { tls: 465, starttls: 587 }, imap: { tls: 993, starttls: 143 } };
type Protocol = keyof typeof mail_ports;

const portOf = (protocol: Protocol) => {
  const { tls, starttls } = default_ports[protocol];
  return z
    .int()
    .min(1)
    .max(65_535)
    .optional()
    .describe(
      `The port of the server, one of ${mail_ports[protocol].join(', ')}. Default: ${tls} for \`tls\`, ${starttls} for \`starttls\`.`,
    );
};
const server = (protocol: Protocol) =>
  z.strictObject({
    host,
    port: portOf(protocol),
    security,
    username: text.min(1).max(320).optional().describe('The user name of the login. Required unless `oauth` is sent.'),
    password: text
      .min(1)
      .max(1024)
      .optional()
      .describe(
        'The password of the login, which may be an app password. Required unless `oauth` is sent. It is never shown.',
      ),
  });

export const smtp = server('smtp').describe(
  'The server that sends, with its login, which is tried; the password is encrypted. Required for a new inbox unless `oauth` is sent: then another server than the provider’s, without a login.',
);
export const imap = server('imap').describe(
  'The server that receives, with its login, which is tried; the password is encrypted. Required for a new inbox unless `oauth` is sent: then another server than the provider’s, without a login.',
);
export const oauth = z
  .strictObject({
    provider: oauth_provider,
    client_id: text.min(1).max(500).describe('The id of your client at the provider.'),
    client_secret: text.min(1).max(500).describe('The secret of your client. It is never shown.'),
    refresh_token: text.min(1).max(4096).describe('The refresh token of the mailbox. It is never shown.'),
  })
  .describe('OAuth 2, instead of passwords: your own client at the provider, and a refresh token with access to mail.');

const daily_limit = z.int().min(1).max(500).describe('The most emails that are sent in a day, in `timezone`.');
const ramp = z
  .strictObject({
    start: z.int().min(1).max(500).describe('The most emails on the first day.'),
    step: z.int().min(1).max(100).describe('How many more emails a day after each day on which the inbox sent.'),
  })
  .nullable()
  .describe(
    'Increases the number of emails a day up to `daily_limit`: `start` on the first day, and `step` more after each day on which the inbox sent. Null: no ramp.',
  );
const authserv_id = z
  .string()
  .trim()
  .toLowerCase()
  .regex(/^[a-z0-9._-]+$/, 'must be the first word of an Authentication-Results header, such as mx.example.com')
  .max(253)
  .nullable()
  .describe(
    'The name that your mail server signs its `Authentication-Results` with: the first word of that header in an email that you received, or the domain of it. Set it only if the server adds that header to every email that comes in. Null: known for large providers; of other servers a pass proves nothing, and a failure counts.',
  );
const gap = z.int().min(0).max(86_400);

export const settings = {
  from_name: oneLine(200),
  daily_limit,
  ramp,
  min_gap_s: gap.describe('The least time between two emails, in seconds. Not more than `max_gap_s`.'),
  max_gap_s: gap.describe('The most time between two emails that are due, in seconds. Not less than `min_gap_s`.'),
  reply_to: email.nullable().describe('Where replies go. Null: to the inbox itself, where they are read.'),
  signature: text.max(5000).nullable().describe('Text at the end of each email. Null: none.'),
  timezone: timeZone.describe('The IANA time zone of the days that `daily_limit` counts.'),
  authserv_id,
};

export const defaults = {
  ...{ daily_limit: 40, ramp: { start: 10, step: 2 }, min_gap_s: 90, max_gap_s: 300 },
  ...{ reply_to: null, signature: null, timezone: 'UTC', authserv_id: null },
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
