import type SMTPConnection from 'nodemailer/lib/smtp-connection';
import type { SMTPConnectionAuth } from 'nodemailer/lib/smtp-connection';
import { isSmtpRefusal, wordsOf } from './login_answer.ts';
import type { Server } from './settings.ts';

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

export const secretOf = (proof: Proof): string => ('password' in proof ? proof.password : proof.access_token);

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
    throw Object.assign(isRefusal(error) ? refused : (error as Error), { said });
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
function isRefusal(error: unknown): boolean {
  const { code, responseCode, response } = error as { code?: string; responseCode?: number; response?: string };
  return code === 'EAUTH' && responseCode !== undefined && responseCode >= 500 && isSmtpRefusal(response ?? '');
}
