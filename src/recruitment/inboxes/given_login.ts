/** The login that a request gives: both servers with passwords, or OAuth 2 at a provider whose servers are known. */
import type { z } from 'zod';
import { Problem } from '../../core/values/problem.ts';
import type { Login } from './login.ts';
import { default_ports, imap, oauth, provider_servers, type Server, smtp } from './settings.ts';

export const login_fields = { smtp: smtp.optional(), imap: imap.optional(), oauth: oauth.optional() };

type Given = { [Field in keyof typeof login_fields]?: z.infer<(typeof login_fields)[Field]> | undefined };

export const namesLogin = ({ smtp, imap, oauth }: Given): boolean => [smtp, imap, oauth].some((field) => field);

/**
 * @param username of the servers of a provider: the inbox's email address
 * @param before the login that the request changes; undefined for a new inbox
 * @throws Problem missing_parameter, invalid_parameter
 */
export function loginOf(given: Given, username: string, before?: Login): Login {
  if (given.oauth) return withProvider(given, given.oauth, username);
  if (before?.oauth && !(given.smtp && given.imap)) {
    throw missing(given.smtp ? 'imap' : 'smtp', 'Send both servers with their passwords to replace `oauth`.');
  }
  const [smtp, smtp_password] = withPassword('smtp', given, before);
  const [imap, imap_password] = withPassword('imap', given, before);
  return { smtp, imap, oauth: null, secrets: { smtp_password, imap_password } };
}

function withProvider(given: Given, client: z.infer<typeof oauth>, username: string): Login {
  const { provider, client_id, client_secret, refresh_token } = client;
  const server = (protocol: 'smtp' | 'imap'): Server => {
    const named = given[protocol];
    const login = (['password', 'username'] as const).find((field) => named?.[field] !== undefined);
    if (login) {
      const message =
        'With `oauth`, a server has no password and no user name of its own. Remove them, or remove `oauth`.';
      throw new Problem('invalid_parameter', message, { param: `${protocol}.${login}` });
    }
    return { ...(named ? withPort(protocol, named) : provider_servers[provider][protocol]), username };
  };
  return {
    ...{ smtp: server('smtp'), imap: server('imap'), oauth: { provider, client_id } },
    secrets: { client_secret, refresh_token },
  };
}

function withPassword(protocol: 'smtp' | 'imap', given: Given, before: Login | undefined): [Server, string] {
  const named = given[protocol];
  if (named?.username !== undefined && named.password !== undefined) {
    const { username, password, ...server } = named;
    return [{ ...withPort(protocol, server), username }, password];
  }
  if (named) {
    const field = named.password === undefined ? 'password' : 'username';
    throw missing(`${protocol}.${field}`, 'Send the `username` and the `password` of the server, or use `oauth`.');
  }
  if (before && 'smtp_password' in before.secrets) return [before[protocol], before.secrets[`${protocol}_password`]];
  throw missing(protocol, `Send \`${protocol}\`, or use \`oauth\`.`);
}

const withPort = <Given extends { port?: number | undefined; security: Server['security'] }>(
  protocol: 'smtp' | 'imap',
  given: Given,
) => ({ ...given, port: given.port ?? default_ports[protocol][given.security] });

const missing = (param: string, message: string): Problem => new Problem('missing_parameter', message, { param });
