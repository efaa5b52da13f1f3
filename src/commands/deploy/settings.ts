/** The settings of the environment, for what runs Rail elsewhere. */
import { readConfig, secret_settings, settings } from '../../config.ts';
import { UsageError } from '../command.ts';

export interface DeployedSettings {
  /** Those that hold no secret. */
  plain: [name: string, value: string][];
  /** The names of those that come as files. */
  secret: string[];
}

/** Without these Rail does not run on a Postgres of its own. */
const needed = ['DATABASE_URL', 'RAIL_ENCRYPTION_KEY'];
/** The settings that the manifests themselves set. */
const set_here = ['HOST', 'PORT', 'METRICS_PORT', 'RAIL_DATA_DIR'];
/** Behind a proxy, if nothing else is set: proxies that look each second see in time that an API stops. */
export const drain_seconds = '5';

/** @throws UsageError where BASE_URL is not set */
export function deployedSettings(environment: NodeJS.ProcessEnv = process.env): DeployedSettings {
  const isSet = (name: string) => [name, `${name}_FILE`].some((one) => (environment[one] ?? '') !== '');
  const named: readonly string[] = secret_settings;
  const secret = named.filter((name) => needed.includes(name) || isSet(name));
  // Files and whatever only the other machine has are not read here.
  const here = Object.entries(environment).filter(([name]) => !named.includes(name.replace(/_FILE$/, '')));
  readConfig(Object.fromEntries(here));
  if (!environment.BASE_URL) throw new UsageError('Set BASE_URL to the URL that clients will reach the API at.');
  const names = settings.map(({ name }) => name).filter((name) => !named.includes(name) && !set_here.includes(name));
  const plain = names.flatMap((name): [string, string][] => (environment[name] ? [[name, environment[name]]] : []));
  return { plain, secret };
}

/** The name of a secret's file: `database_url`. */
export const fileOf = (name: string): string => name.toLowerCase();
