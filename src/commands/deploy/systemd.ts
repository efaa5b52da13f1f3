/** `rail deploy systemd`: the units that run Rail on a machine with systemd 250 or later. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { deployedSettings, drain_seconds, fileOf } from './settings.ts';

export interface SystemdOptions {
  /** The directory of the checkout, and the program of Node: those that this command runs from unless told otherwise. */
  directory: string;
  node: string;
  user: string;
  apis: number;
  workers: number;
  /** The directory that the files are written to; left out, they are printed. */
  output?: string;
}

const first_port = 3000;
const first_metrics_port = 9464;
const settings_file = '/etc/rail/rail.env';

export async function printSystemd(options: SystemdOptions): Promise<void> {
  const files = units(options);
  if (options.output === undefined) {
    for (const [name, text] of Object.entries(files)) console.log(`# ${placeOf(name)}\n${text}`);
    return;
  }
  await mkdir(options.output, { recursive: true });
  for (const [name, text] of Object.entries(files)) await writeFile(join(options.output, name), text);
  for (const name of Object.keys(files)) console.log(`wrote ${join(options.output, name)}, for ${placeOf(name)}`);
}

const placeOf = (name: string): string => (name.endsWith('.env') ? settings_file : `/etc/systemd/system/${name}`);

/** The files by their names. @throws UsageError where BASE_URL is not set */
export function units(options: SystemdOptions): Record<string, string> {
  const { apis, workers } = options;
  const { plain, secret } = deployedSettings();
  const numbers = (count: number) => Array.from({ length: count }, (_, nth) => nth);
  const wanted = [
    ...numbers(apis).map((nth) => `rail-api@${first_port + nth}.service`),
    ...numbers(workers).map((nth) => `rail-worker@${first_metrics_port + nth}.service`),
  ];
  return {
    'rail.env': `${plain.map(([name, value]) => `${name}=${quoted(value)}`).join('\n')}\n`,
    'rail.target': section('Unit', [
      ['Description', 'Rail'],
      ['Wants', wanted.join(' ')],
    ]).concat('\n', section('Install', [['WantedBy', 'multi-user.target']])),
    'rail-migrate.service': unit(options, secret, 'migrate', [
      ['Type', 'oneshot'],
      ['RemainAfterExit', 'yes'],
      ['TimeoutStartSec', '30min'],
    ]),
    // An API is named by its port, and a worker by that of its metrics.
    'rail-api@.service': unit(options, secret, 'api', [
      ['Environment', `HOST=127.0.0.1 PORT=%i DRAIN_SECONDS=${drain_seconds}`],
      ...lasting,
    ]),
    'rail-worker@.service': unit(options, secret, 'worker', [
      ['Environment', 'HOST=127.0.0.1 METRICS_PORT=%i'],
      ...lasting,
    ]),
  };
}

type Lines = [name: string, value: string][];

const lasting: Lines = [
  ['Restart', 'always'],
  ['RestartSec', '2'],
  ['TimeoutStopSec', '30'],
  ['LimitNOFILE', '65536'],
  ['MemoryMax', '1G'],
  ['TasksMax', '200'],
];

/** V8 writes code into memory, which MemoryDenyWriteExecute would not let it. */
const confined: Lines = [
  ['NoNewPrivileges', 'yes'],
  ['CapabilityBoundingSet', ''],
  ['PrivateDevices', 'yes'],
  ['PrivateTmp', 'yes'],
  ['ProtectClock', 'yes'],
  ['ProtectControlGroups', 'yes'],
  ['ProtectHome', 'read-only'],
  ['ProtectHostname', 'yes'],
  ['ProtectKernelLogs', 'yes'],
  ['ProtectKernelModules', 'yes'],
  ['ProtectKernelTunables', 'yes'],
  ['ProtectProc', 'invisible'],
  ['ProtectSystem', 'strict'],
  ['RestrictAddressFamilies', 'AF_INET AF_INET6 AF_UNIX AF_NETLINK'],
  ['RestrictNamespaces', 'yes'],
  ['RestrictRealtime', 'yes'],
  ['RestrictSUIDSGID', 'yes'],
  ['SystemCallArchitectures', 'native'],
  ['UMask', '0077'],
];

function unit(options: SystemdOptions, secret: string[], command: string, own: Lines): string {
  const { directory, node, user } = options;
  const is_migration = command === 'migrate';
  const migrate = 'rail-migrate.service';
  return [
    section('Unit', [
      ['Description', `Rail: ${is_migration ? 'migrates the database' : `${command} %i`}`],
      // Not Requires, with which an upgrade that runs the migration again would stop all that runs.
      ['Wants', ['network-online.target', ...(is_migration ? [] : [migrate])].join(' ')],
      ['After', ['network-online.target', 'postgresql.service', ...(is_migration ? [] : [migrate])].join(' ')],
      ...(is_migration ? [] : ([['PartOf', 'rail.target']] satisfies Lines)),
    ]),
    section('Service', [
      ['User', user],
      ['WorkingDirectory', directory],
      ['ExecStart', `${quoted(node)} ${quoted(join(directory, 'src/rail.js'))} ${command}`],
      ['Environment', 'NODE_ENV=production'],
      ['EnvironmentFile', settings_file],
      ...secret.flatMap(
        (name): Lines => [
          ['LoadCredential', `${fileOf(name)}:/etc/rail/${fileOf(name)}`],
          ['Environment', `${name}_FILE=%d/${fileOf(name)}`],
        ],
      ),
      ...own,
      ...confined,
    ]),
  ].join('\n');
}

const section = (name: string, lines: Lines): string =>
  `[${name}]\n${lines.map(([key, value]) => `${key}=${value}\n`).join('')}`;

/** As in a shell; a percent sign means something in a unit. */
const quoted = (text: string): string => (/^[\w@:,.+/-]*$/.test(text) ? text : JSON.stringify(text));
