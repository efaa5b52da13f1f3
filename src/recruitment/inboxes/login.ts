import type { Services } from '../../core/resource/services.ts';
import { Problem } from '../../core/values/problem.ts';
import {
  LoginRefused,
  mailServerAddress,
  openImap,
  openSmtp,
  type Proof,
  type Protocol,
  type Timeouts,
} from './mail_server.ts';
import { refreshTokens } from './oauth.ts';
import type { OAuthProvider, Server } from './settings.ts';

/** The secrets of an inbox, which are stored encrypted. */
export type Secrets =
  | { smtp_password: string; imap_password: string }
  | { client_secret: string; refresh_token: string };

/** Everything that a login needs. */
export interface Login {
  smtp: Server;
  imap: Server;
  oauth: { provider: OAuthProvider; client_id: string } | null;
  secrets: Secrets;
}

/**
 * Tries both logins, side by side. Gives the secrets to keep: a provider may have replaced the refresh token.
 * @throws Problem smtp_auth_failed, imap_auth_failed, smtp_unreachable, imap_unreachable, oauth_failed, address_not_allowed
 */
export async function tryLogin(login: Login, services: Services): Promise<Secrets> {
  // To load one keeps the process busy: the time of the other login must not run meanwhile.
  await Promise.all([import('imapflow'), import('nodemailer/lib/smtp-connection')]);
  const { proofs, secrets } = await proofsOf(login, services);
  const outcomes = await Promise.allSettled([
    trySmtp(login.smtp, proofs.smtp, services),
    tryImap(login.imap, proofs.imap, services),
  ]);
  for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason;
  return secrets;
}

/** Returns the proofs for both servers. The secrets are the ones given, unless the provider replaced the refresh token. */
export async function proofsOf(
  { oauth, secrets }: Login,
  services: Services,
): Promise<{ proofs: Record<Protocol, Proof>; secrets: Secrets }> {
  if ('smtp_password' in secrets) {
    const { smtp_password, imap_password } = secrets;
    return { proofs: { smtp: { password: smtp_password }, imap: { password: imap_password } }, secrets };
  }
  if (!oauth) throw new Error('An inbox with a refresh token has a provider.');
  const { access_token, refresh_token } = await refreshTokens({ ...oauth, ...secrets }, services);
  const is_kept = refresh_token === secrets.refresh_token;
  return {
    proofs: { smtp: { access_token }, imap: { access_token } },
    secrets: is_kept ? secrets : { ...secrets, refresh_token },
  };
}

async function trySmtp(server: Server, proof: Proof, services: Services): Promise<void> {
  const address = await mailServerAddress('smtp', server, services);
  const opening = openSmtp(server, address, proof, clientName(services), timeoutsOf(services));
  const connection = await opening.catch(refusedBy('smtp'));
  connection.quit();
}

async function tryImap(server: Server, proof: Proof, services: Services): Promise<void> {
  const address = await mailServerAddress('imap', server, services);
  const client = await openImap(server, address, proof, timeoutsOf(services)).catch(refusedBy('imap'));
  client.close();
}

/** The time-out of each step, so that both logins end within the time of a request. */
const usual_ms = 8_000;

/** The time-outs of a login that is tried. */
export function timeoutsOf({ patience_ms }: Services): Timeouts {
  const login_ms = patience_ms?.login ?? usual_ms;
  return { login_ms, silence_ms: login_ms };
}

/** The name in EHLO: the host of the service. */
export const clientName = ({ base_url }: Services): string => new URL(base_url).hostname;

/** The server's response is not repeated: it may hold the login. */
const refusedBy =
  (protocol: Protocol) =>
  (error: unknown): never => {
    const name = protocol.toUpperCase();
    if (error instanceof LoginRefused) {
      const message = `The ${name} server refused the login. Check \`username\` and \`password\`. Many providers require an app password.`;
      throw new Problem(`${protocol}_auth_failed`, message, { param: protocol });
    }
    if (isDeferred(error)) {
      const message = `The ${name} server accepts no logins at the moment. Retry later.`;
      throw new Problem(`${protocol}_unreachable`, message, { param: protocol });
    }
    const message = `The connection to the ${name} server failed${faultOf(error)}. Check \`host\`, \`port\` and \`security\`.`;
    throw new Problem(`${protocol}_unreachable`, message, { param: protocol });
  };

/** The server answered the login, and not that it is wrong. */
function isDeferred(error: unknown): boolean {
  const { authenticationFailed, responseStatus, code, responseCode } = error as Record<string, unknown>;
  return (authenticationFailed === true && responseStatus !== undefined) || (code === 'EAUTH' && !!responseCode);
}

/** In plain words, and nothing that the server said; empty where the error does not say. */
function faultOf(error: unknown): string {
  const { code = '', message, responseCode } = error as Error & { code?: string; responseCode?: number };
  if (responseCode) return `: it answered ${responseCode}`;
  // nodemailer gives every error of a socket the code ESOCKET: then its message decides.
  const fault = code === 'ESOCKET' ? message : code;
  if (/certificate|altnames|CERT|SELF_SIGNED|UNABLE_TO_/.test(fault))
    return ': its certificate is not valid for the host';
  if (/ECONNREFUSED|EHOSTUNREACH|ENETUNREACH/.test(fault)) return ': it refused the connection';
  if (/TIMEDOUT|TIMEOUT|GREETING/i.test(fault)) return ': it did not answer in time';
  if (/TLS|EPROTO|SSL/.test(fault)) return ': it does not offer TLS at this port';
  return '';
}
