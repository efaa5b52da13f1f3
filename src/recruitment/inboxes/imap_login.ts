import tls, { type SecureContext } from 'node:tls';
import type { ImapFlow } from 'imapflow';
import { isCertainOfImap, isImapRefusal, wordsOf } from './login_answer.ts';
import type { Server } from './settings.ts';
import { LoginRefused, type Proof, secretOf, type Timeouts } from './smtp_login.ts';

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
    throw Object.assign(isRefusal(error) ? refused : (error as Error), { said });
  }
}

/** A NO that says that the login is wrong: not a BAD, a BYE, a connection that is lost, or a server that can answer nobody just now. */
function isRefusal(error: unknown): boolean {
  const { authenticationFailed, responseStatus, code, serverResponseCode, responseText } = error as ImapError;
  if (!authenticationFailed || responseStatus !== 'NO' || code === 'ETHROTTLE') return false;
  return isImapRefusal(serverResponseCode, responseText ?? '');
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
