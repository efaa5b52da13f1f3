/** The mail servers of an inbox: where they are, connections to them that are logged in, by SMTP and IMAP, and what they answer to a login. */
import tls, { type SecureContext } from 'node:tls';
import type { ImapFlow } from 'imapflow';
import type SMTPConnection from 'nodemailer/lib/smtp-connection';
import type { SMTPConnectionAuth } from 'nodemailer/lib/smtp-connection';
import { AddressRefused, isAllowedHost } from '../../core/net/address.ts';
import { NameNotResolved, resolvePublicAddresses } from '../../core/net/resolve.ts';
import type { Services } from '../../core/resource/services.ts';
import { Problem } from '../../core/values/problem.ts';
import { storable } from '../../core/values/texts/stored_text.ts';
import { mail_ports, type Server } from './settings.ts';

export type Protocol = 'smtp' | 'imap';

const resolve_ms = 4_000;

/**
 * The address of a mail server, checked as the address of a webhook endpoint is. Connect to it, and verify the certificate for the host.
 * @throws Problem address_not_allowed, naming the host or the port
 */
export async function mailServerAddress(
  protocol: Protocol,
  { host, port }: Server,
  services: Services,
): Promise<string> {
  const { allow_private_addresses: allowPrivate, own_hosts: ownHosts, name_servers: nameServers } = services;
  if (!allowPrivate && !mail_ports[protocol].includes(port)) {
    throw refused(protocol, 'port', `The port must be one of ${mail_ports[protocol].join(', ')}.`);
  }
  if (!isAllowedHost(host, { allowPrivate, ownHosts })) throw refused(protocol, 'host', not_public);
  try {
    const [first] = await resolvePublicAddresses(host, { allowPrivate, nameServers, timeoutMs: resolve_ms });
    return first?.address as string;
  } catch (error) {
    if (error instanceof AddressRefused || error instanceof NameNotResolved)
      throw refused(protocol, 'host', not_public);
    throw error;
  }
}

const not_public =
  'The host could not be resolved, or does not resolve to public internet addresses only. Use a host name that has an A or AAAA record in public DNS. If the same is said of every host, the service reaches no name server.';

const refused = (protocol: Protocol, field: 'host' | 'port', message: string): Problem =>
  new Problem('address_not_allowed', message, { param: `${protocol}.${field}` });

/** The proof of identity of a login. */
export type Proof = { password: string } | { access_token: string };

/** The server refused the login: another attempt with the same proof is refused too. */
export class LoginRefused extends Error {
  override readonly name = 'LoginRefused';
  /** False: no code says so, and the words of the server may say another thing. */
  readonly is_certain: boolean;

  constructor(message: string, { is_certain, cause }: { is_certain: boolean; cause: unknown }) {
    super(message, { cause });
    this.is_certain = is_certain;
  }
}

const secretOf = (proof: Proof): string => ('password' in proof ? proof.password : proof.access_token);

export interface Timeouts {
  /** The time-out of connecting, the greeting and the login, each. */
  login_ms: number;
  /** The time-out of each answer once the login is done. */
  silence_ms: number;
}

/**
 * Opens a connection to an SMTP server and logs in. Always over TLS, whose certificate is verified for the server's host.
 * @param address where the host was found to be
 * @param client_name what EHLO says
 * @throws LoginRefused, or an Error that says why the server cannot be used
 */
export async function openSmtp(
  { host, port, security, username }: Server,
  address: string,
  proof: Proof,
  client_name: string,
  { login_ms, silence_ms }: Timeouts,
): Promise<SMTPConnection> {
  const { default: Connection } = await import('nodemailer/lib/smtp-connection');
  const connection = new Connection({
    ...{ host: address, port, servername: host, secure: security === 'tls', requireTLS: security === 'starttls' },
    ...{ name: client_name, tls: { servername: host, minVersion: 'TLSv1.2' }, logger: false },
    ...{ connectionTimeout: login_ms, greetingTimeout: login_ms, socketTimeout: silence_ms, socketCloseTimeout: 0 },
  });
  const timer = setTimeout(() => connection.emit('error', new Error('The login took too long.')), 3 * login_ms);
  try {
    await new Promise<void>((resolve, reject) => {
      connection.once('error', reject);
      connection.connect((error) => (error ? reject(error) : resolve()));
    });
    await new Promise<void>((resolve, reject) => {
      connection.once('error', reject);
      connection.login(authOf(username, proof), (error) => (error ? reject(error) : resolve()));
    });
    return connection;
  } catch (error) {
    connection.close();
    const { response, responseCode } = error as { response?: string; responseCode?: number };
    // RFC 4954: by the code itself the credentials are wrong, or not of the kind that the server takes.
    const is_certain = responseCode === 535 || responseCode === 534;
    const refused = new LoginRefused('The SMTP server refused the login.', { is_certain, cause: error });
    const said = wordsOf([response], [username, secretOf(proof)]);
    throw Object.assign(isRefusalOfSmtp(error) ? refused : (error as Error), { said });
  } finally {
    clearTimeout(timer);
  }
}

function authOf(user: string, proof: Proof): SMTPConnectionAuth {
  if ('password' in proof) return { user, pass: proof.password, credentials: { user, pass: proof.password } };
  const { access_token } = proof;
  const oauth2 = {
    getToken: (_renew: boolean, callback: (error: null, token: string) => void) => callback(null, access_token),
    buildXOAuth2Token: (token: string) =>
      Buffer.from(`user=${user}\x01auth=Bearer ${token}\x01\x01`).toString('base64'),
  };
  return {
    user,
    type: 'OAuth2',
    method: 'XOAUTH2',
    oauth2: oauth2 as unknown as NonNullable<SMTPConnectionAuth['oauth2']>,
  };
}

/** 535 and its like, and not an answer that may be another one later (4xx, or a 5xx that says so) or none. */
function isRefusalOfSmtp(error: unknown): boolean {
  const { code, responseCode, response } = error as { code?: string; responseCode?: number; response?: string };
  return code === 'EAUTH' && responseCode !== undefined && responseCode >= 500 && isSmtpRefusal(response ?? '');
}

/** The limit of a server's response. Longer ones are refused. */
const most_bytes = 64 * 1024 * 1024;

let context: { trusted: string[]; context: SecureContext } | undefined;

/** One for all connections: it takes 31 kB, and a worker holds thousands. Another where other authorities are trusted. */
function secureContext(): SecureContext {
  const trusted = tls.getCACertificates('default');
  if (context?.trusted !== trusted) context = { trusted, context: tls.createSecureContext({ minVersion: 'TLSv1.2' }) };
  return context.context;
}

/**
 * Opens a connection to an IMAP server and logs in. Always over TLS, whose certificate is verified for the server's host.
 * @param address where the host was found to be
 * @throws LoginRefused, or an Error that says why the server cannot be used
 */
export async function openImap(
  { host, port, security, username }: Server,
  address: string,
  proof: Proof,
  { login_ms, silence_ms }: Timeouts,
): Promise<ImapFlow> {
  const { ImapFlow } = await import('imapflow');
  const client = new ImapFlow({
    ...{ host: address, port, servername: host, secure: security === 'tls' },
    ...(security === 'starttls' ? { doSTARTTLS: true } : {}),
    auth: {
      user: username,
      ...('password' in proof ? { pass: proof.password } : { accessToken: proof.access_token }),
    },
    ...{ tls: { servername: host, secureContext: secureContext() }, logger: false, disableAutoIdle: true },
    ...{ connectionTimeout: login_ms, greetingTimeout: login_ms, socketTimeout: silence_ms },
    ...{ maxLineLength: 1024 * 1024, maxLiteralSize: most_bytes, maxResponseSize: 2 * most_bytes },
  });
  // Errors after `connect` has failed add nothing.
  client.on('error', () => {});
  try {
    await client.connect();
    return client;
  } catch (error) {
    client.close();
    const { serverResponseCode: code, responseStatus, responseText, reason } = error as ImapError;
    const is_certain = isCertainOfImap(code);
    const refused = new LoginRefused('The IMAP server refused the login.', { is_certain, cause: error });
    const said = wordsOf([responseStatus, code && `[${code}]`, responseText ?? reason], [username, secretOf(proof)]);
    throw Object.assign(isRefusalOfImap(error) ? refused : (error as Error), { said });
  }
}

/**
 * A NO that says that the login is wrong: not a BAD, a BYE, a connection that is lost, or a server that can answer nobody just now. One without a code (RFC 5530)
 * or a reason does.
 */
function isRefusalOfImap(error: unknown): boolean {
  const { authenticationFailed, responseStatus, code, serverResponseCode, responseText } = error as ImapError;
  if (!authenticationFailed || responseStatus !== 'NO' || code === 'ETHROTTLE') return false;
  if (isCertainOfImap(serverResponseCode)) return true;
  const is_temporary = temporary_codes.includes((serverResponseCode ?? '').toUpperCase());
  return !is_temporary && !temporary_texts.test(responseText ?? '');
}

interface ImapError {
  authenticationFailed?: boolean;
  responseStatus?: string;
  code?: string;
  serverResponseCode?: string;
  responseText?: string;
  /** The text of a BYE. */
  reason?: string;
}

/** RFC 5530, and what Gmail and Exchange add to it: the login is refused, whatever else is said. */
const refusals = [
  ...['AUTHENTICATIONFAILED', 'AUTHORIZATIONFAILED', 'EXPIRED', 'PRIVACYREQUIRED', 'CONTACTADMIN'],
  ...['NOPERM', 'WEBALERT'],
];
/** The login may be right: later the answer may be another one. */
const temporary_codes = ['UNAVAILABLE', 'LIMIT', 'INUSE', 'SERVERBUG', 'THROTTLED', 'OVERQUOTA', 'CORRUPTION'];

/** The same in words, for servers that give no code. */
const temporary_texts = new RegExp(
  [
    /temporar|unavailable|too many|throttl|overload|\bbusy\b|in use|maintenance|time(d|s)?[ -]?out|but not connected/,
    /(internal|server|system|backend|database) (error|failure)|(limit|quota|number of \w+)( \S+){0,4} (reached|exceeded)/,
    /try(ing)? (again )?later|again (later|in )/,
  ]
    .map(({ source }) => source)
    .join('|'),
  'i',
);

/** Returns whether an IMAP server's NO says by its code that the login is wrong. Words, of whatever language, may mean something else. */
const isCertainOfImap = (code: string | undefined): boolean => refusals.includes((code ?? '').toUpperCase());

/** Returns whether an SMTP server's 5xx says that the login is wrong. Its text may have a status of RFC 3463. */
export const isSmtpRefusal = (text: string): boolean =>
  !/\b4\.\d{1,3}\.\d{1,3}\b/.test(text) && !temporary_texts.test(text);

const most_characters = 200;

/** Returns a server's response to a login on one line, without the secrets that it was sent. Undefined: it said nothing. */
function wordsOf(parts: (string | undefined)[], shown: string[]): string | undefined {
  const text = parts
    .filter((part) => part)
    .join(' ')
    .replaceAll(/[\s\p{Cc}]+/gu, ' ')
    .trim();
  const secrets = shown.flatMap((each) => [each, Buffer.from(each).toString('base64')]).filter((each) => each !== '');
  const said = secrets.reduce((words, secret) => words.replaceAll(secret, '…'), text);
  return said === '' ? undefined : storable(said, most_characters);
}
