/** Settings that are misspelt, or contradict each other: pure, and without secrets. */
import { type Config, misspelt, settings } from '../../config.ts';
import type { Finding, Line } from '../../core/doctor/check.ts';
import { poolsOf } from '../../core/jobs/extension.ts';
import { leastConnections } from '../../core/postgres/connections.ts';
import { extensions } from '../../products.ts';
import { isEveryAddress } from '../../service.ts';

const warning = (text: string, remedy: string): Finding => ({ state: 'warning', text, remedy });
const error = (text: string, remedy: string): Finding => ({ state: 'error', text, remedy });

type Rule = (config: Config) => Finding | false | '' | undefined;

const is_https = ({ BASE_URL }: Config): boolean => BASE_URL?.startsWith('https:') === true;
const is_loopback = (url: string): boolean => /^http:\/\/(127\.|localhost\b|\[::1\])/.test(url);

const rules: Record<string, Rule> = {
  'settings/database': ({ DATABASE_URL, RAIL_DEMO_MAIL, DATABASE_READ_URL }) => {
    if (DATABASE_READ_URL && !DATABASE_URL)
      return error('DATABASE_READ_URL is set, and DATABASE_URL is not.', 'Set both, or neither.');
    if (DATABASE_READ_URL === DATABASE_URL && DATABASE_URL)
      return warning('DATABASE_READ_URL is the same as DATABASE_URL.', 'Leave it unset, or set it to a replica.');
    return (
      RAIL_DEMO_MAIL &&
      DATABASE_URL &&
      warning('RAIL_DEMO_MAIL is 1 on a database of your own.', 'Leave it unset: it is for trying.')
    );
  },
  'settings/encryption_key': ({ DATABASE_URL, RAIL_ENCRYPTION_KEY }) =>
    DATABASE_URL &&
    !RAIL_ENCRYPTION_KEY &&
    error(
      "RAIL_ENCRYPTION_KEY is not set: 'npx --no rail api' and 'npx --no rail worker' do not start.",
      'Set it to the key of this database, the same in all processes.',
    ),
  'settings/base_url': (config) => {
    const { BASE_URL, HOST, DATABASE_URL } = config;
    if (!BASE_URL && isEveryAddress(HOST))
      return error(
        `BASE_URL is not set, and HOST is ${HOST}, which links cannot name.`,
        'Set BASE_URL to the URL that clients reach the API at.',
      );
    if (!BASE_URL)
      return (
        DATABASE_URL &&
        warning(
          'BASE_URL is not set: links and emails name this machine.',
          'Set it to the URL that clients reach the API at.',
        )
      );
    if (!is_https(config) && !is_loopback(BASE_URL))
      return warning(
        'BASE_URL is http: keys cross the network in the clear, and no campaign can be launched.',
        'Put a proxy with TLS in front of the API, and set BASE_URL to https.',
      );
    if (new URL(BASE_URL).pathname !== '/')
      return warning(
        `BASE_URL has the path ${new URL(BASE_URL).pathname}: the API answers at the root.`,
        'Have the proxy take the path off, or leave it out of BASE_URL.',
      );
    return undefined;
  },
  'settings/proxies': (config) =>
    is_https(config) &&
    config.TRUSTED_PROXIES === undefined &&
    warning(
      'BASE_URL is https, so a proxy is in front of the API, and TRUSTED_PROXIES is not set: all visitors have the address of the proxy.',
      'Set TRUSTED_PROXIES to the number of proxies, or to their networks.',
    ),
  'settings/ports': ({ PORT, METRICS_PORT }) =>
    PORT !== 0 &&
    PORT === METRICS_PORT &&
    error(`PORT and METRICS_PORT are both ${PORT}.`, 'Set METRICS_PORT to another port.'),
  'settings/pool': ({ DATABASE_POOL_SIZE: size, METRICS_PORT }) => {
    const more = METRICS_PORT === undefined ? 0 : 1;
    const api = leastConnections('api', 0) + more;
    const worker = leastConnections('worker', poolsOf(extensions)) + more;
    if (size >= worker) return undefined;
    const text = `DATABASE_POOL_SIZE is ${size}: an API needs ${api} connections at least, a worker ${worker}.`;
    const remedy = `Set it to ${worker} or more, or leave it unset for 20. A process that needs more does not start.`;
    return size < api ? error(text, remedy) : warning(text, remedy);
  },
  'settings/mail': ({ SMTP_URL, MAIL_FROM, DATABASE_URL }) => {
    if (!SMTP_URL && MAIL_FROM)
      return warning('MAIL_FROM is set, and SMTP_URL is not: no mail is sent.', 'Set SMTP_URL.');
    return (
      !SMTP_URL &&
      DATABASE_URL &&
      warning('SMTP_URL is not set: mail to owners and partners is written to the log, and not sent.', 'Set SMTP_URL.')
    );
  },
  'settings/webhooks': (config) =>
    config.RAIL_WEBHOOK_ALLOW_PRIVATE &&
    is_https(config) &&
    warning(
      'RAIL_WEBHOOK_ALLOW_PRIVATE is 1: tenants can send requests into your network.',
      'Leave it unset in production.',
    ),
  'settings/log': ({ LOG_LEVEL }) =>
    ['silent', 'fatal', 'error'].includes(LOG_LEVEL) &&
    warning(`LOG_LEVEL is ${LOG_LEVEL}: warnings are not logged.`, 'Set it to info or warn.'),
};

/** A line for what is wrong; one line where nothing is. */
export function settingLines(config: Config, environment: NodeJS.ProcessEnv): Line[] {
  const unknown = [...misspelt(environment), ...unknownOfDatabase(environment)].map((text) => ({
    name: 'settings/names',
    ...warning(text, 'Rename it, or remove it: it has no effect.'),
  }));
  const broken = Object.entries(rules).flatMap(([name, rule]) => {
    const found = rule(config);
    return found ? [{ name, ...found }] : [];
  });
  const lines = [...unknown, ...broken];
  if (lines.length > 0) return lines;
  return [{ name: 'settings', state: 'ok', text: 'All settings are known, and none contradicts another.' }];
}

/** `misspelt` leaves these to others, unless they are near to a setting: a host may set some of its own. */
function unknownOfDatabase(environment: NodeJS.ProcessEnv): string[] {
  const known = settings.map(({ name }) => name);
  const told = misspelt(environment).map((text) => text.split(' ')[0]);
  return Object.keys(environment)
    .filter((name) => name.startsWith('DATABASE_') && !known.includes(name) && !told.includes(name))
    .map((name) => `${name} is not a setting of Rail.`);
}
