/** Parses options and arguments, and documents each command. */
import { InvalidArgumentError, Option } from 'commander';
import { secondsIn } from '../commands/output/age.ts';
import { isNetwork } from '../core/net/ip_range.ts';

export const json = () => new Option('--json', 'print one JSON document');

export const example = (...lines: string[]): string =>
  `\n${lines.length === 1 ? 'Example' : 'Examples'}:\n${lines.map((line) => `  $ ${line}`).join('\n')}\n\nSettings come from the environment: npx --no rail help lists them.\n`;

/** The option of a command that needs an organization, and uses the only one by default. */
export const theOnlyOrganization = () =>
  new Option(
    '--org, --organization <id>',
    "id of the organization (default: the only one); 'npx --no rail org list' lists them",
  );

/** Takes an integer from 1 on. */
export const integerUpTo =
  (most: number) =>
  (text: string): number => {
    if (/^[1-9]\d{0,8}$/.test(text) && Number(text) <= most) return Number(text);
    throw new InvalidArgumentError(`It must be an integer from 1 to ${most}.`);
  };

export const positiveInteger = integerUpTo(999_999_999);

export function wholeNumber(text: string): number {
  return text === '0' ? 0 : positiveInteger(text);
}

export function port(text: string): number {
  if (/^\d{1,5}$/.test(text) && Number(text) <= 65_535) return Number(text);
  throw new InvalidArgumentError('It must be an integer from 0 to 65535.');
}

export function filled(text: string): string {
  if (text.trim() !== '') return text;
  throw new InvalidArgumentError('It must not be empty.');
}

export function repeated(text: string, before: string[] = []): string[] {
  return [...before, text];
}

export function listed(text: string, before: string[] = []): string[] {
  return [...before, ...text.split(',').filter(Boolean)];
}

/** Takes networks in CIDR notation. */
export function networks(text: string, before: string[] = []): string[] {
  const wrong = listed(text).find((network) => !isNetwork(network));
  if (wrong === undefined) return [...before, ...listed(text)];
  throw new InvalidArgumentError(`'${wrong}' is no network, such as 203.0.113.0/24.`);
}

/** Takes the reference of a container image: `[host[:port]/]path[:tag][@digest]`. */
export function imageReference(text: string): string {
  const [named = '', ...digests] = text.split('@');
  const [first = '', ...rest] = named.split('/');
  const path =
    rest.length > 0 && /^(?:[A-Za-z0-9.-]+|\[[0-9A-Fa-f:]+\])(?::\d{1,5})?$/.test(first) ? rest : [first, ...rest];
  const [leaf = '', ...tags] = (path.pop() as string).split(':');
  const is_one =
    [...path, leaf].every((name) => /^[a-z0-9]+(?:(?:\.|__?|-+)[a-z0-9]+)*$/.test(name)) &&
    (tags.length === 0 || (tags.length === 1 && /^\w[\w.-]{0,127}$/.test(tags[0] as string))) &&
    (digests.length === 0 || (digests.length === 1 && /^sha256:[0-9a-f]{64}$/.test(digests[0] as string)));
  if (is_one) return text;
  throw new InvalidArgumentError(
    'It must name an image, such as registry.example.com/rail:1.2, or registry.example.com/rail@sha256: with 64 hexadecimal digits.',
  );
}

export function httpUrl(text: string): URL {
  const url = URL.parse(/^\w+:\/\//.test(text) ? text : `http://${text}`);
  if (url && /^https?:$/.test(url.protocol)) return url;
  throw new InvalidArgumentError('It must be an http or https URL, such as localhost:4000/webhooks.');
}

const a_time = 'an ISO 8601 time with a time zone, such as 2027-01-01T00:00:00Z';

export function time(text: string): string {
  const at = timeOf(text);
  if (at !== undefined) return at;
  throw new InvalidArgumentError(`It must be ${a_time}.`);
}

/** A time, or a number of days ago: from midnight in UTC, so that it is the same time whenever it is asked on a day. */
export function timeOrDaysAgo(text: string): string {
  const days = /^(\d{1,4})d$/.exec(text)?.[1];
  const at =
    days === undefined ? timeOf(text) : new Date(new Date().setUTCHours(-24 * Number(days), 0, 0, 0)).toISOString();
  if (at !== undefined) return at;
  throw new InvalidArgumentError(`It must be ${a_time}, or a number of days ago, such as 30d.`);
}

function timeOf(text: string): string | undefined {
  const at = Date.parse(text);
  const is_time = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)$/.test(text) && at > 0;
  return is_time ? new Date(at).toISOString() : undefined;
}

/** Seconds, given as `90s`, `10m`, `12h` or `7d`. */
export function duration(text: string): number {
  const seconds = secondsIn(text);
  if (seconds !== undefined) return seconds;
  throw new InvalidArgumentError('It must be a duration, such as 90s, 10m, 12h or 7d.');
}

/** A time, or days from now as they were given: the database's clock says when that is. */
export function expiry(text: string): string {
  const given = /^\d{1,5}d$/.test(text) ? text : timeOf(text);
  if (given !== undefined) return given;
  throw new InvalidArgumentError(`It must be ${a_time}, or a number of days, such as 90d.`);
}
