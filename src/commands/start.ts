import type { FastifyInstance } from 'fastify';
import { type Config, readConfig } from '../config.ts';
import { isEveryAddress, localUrl } from '../service.ts';
import { type Demo, type DemoLinks, demoLinks, demos, keepDemo } from './demo.ts';
import { listenOn, type Running, runProcess, startWorkerOf } from './process.ts';
import { logFile } from './start_log.ts';
import { stopParts, stopped } from './stop.ts';

const most_ports = 50;

/** `rail start`: everything in one process, on the embedded Postgres unless `DATABASE_URL` names another. */
export async function start(): Promise<void> {
  await runProcess('start', serve);
  console.log(`\nStopped. Its data is kept in ${readConfig().RAIL_DATA_DIR}.`);
}

async function serve(opened: Running, stopping: AbortSignal): Promise<void> {
  const { config } = opened;
  const world = config.RAIL_DEMO_MAIL
    ? await (await import('../demo/demo_world.ts')).startDemoWorld(opened.services)
    : undefined;
  const running = world ? { ...opened, services: world.services } : opened;
  const worker = await startWorkerOf(running);
  let app: FastifyInstance | undefined;
  try {
    await Promise.race([worker.ready, stopped(stopping)]);
    if (stopping.aborted) return;
    const listening = await listenOn(portsFrom(config.PORT), running);
    app = listening.app;
    const base_url = localUrl(config.HOST, listening.port);
    // Short links name the address that answers them, also where the port moved.
    if (!config.BASE_URL) running.services.base_url = base_url;
    const demo = await keepDemo(running, base_url, world?.fields);
    running.services.demo_key = demo?.publishable_key;
    running.services.operator_organization ??= demo?.organization_id;
    const links = demo && (await demoLinks(running, demo));
    print(
      base_url,
      notesOn(config, listening.port),
      demo && links ? aboutDemo(demo, links) : aboutKeys,
      endLine(config),
    );
    await stopped(stopping);
  } finally {
    await stopParts({ app, worker }, running);
    await world?.close();
  }
}

/** The port that was asked for, then those after it. */
const portsFrom = (port: number): number[] =>
  port === 0 ? [0] : Array.from({ length: most_ports }, (_, nth) => port + nth).filter((other) => other <= 65_535);

/** Returns notes about settings that do not apply. */
function notesOn({ HOST, PORT, BASE_URL }: Config, port: number): string[] {
  const notes: string[] = [];
  if (PORT !== 0 && port !== PORT)
    notes.push(`Port ${PORT} is taken, so this is on the next free one. PORT chooses another.`);
  if (!BASE_URL && isEveryAddress(HOST))
    notes.push(
      `HOST is ${HOST}, which links cannot name: they name ${localUrl(HOST, port)}. BASE_URL sets another URL.`,
    );
  return notes;
}

function print(base_url: string, notes: string[], about: string[], end: string): void {
  const lines = [
    '',
    ...notes.flatMap((note) => [note, '']),
    `Rail is running on ${base_url}`,
    `Its API is described at ${base_url}/docs`,
    '',
    ...about,
    '',
    end,
    '',
  ];
  console.log(lines.join('\n'));
}

const endLine = (config: Config): string =>
  `Ctrl-C stops it. Its data is kept.${process.stderr.isTTY ? ` Its log is ${logFile(config)}.` : ''}`;

const aboutKeys = [
  "  This database has organizations. Make a key with 'npx --no rail key create'; 'npx --no rail org list' shows whose it can be.",
];

const aboutDemo = (demo: Demo, links: DemoLinks): string[] => [
  `  Organization  ${demo.organization_id}`,
  ...demos.map(({ noun }) => `  ${noun.charAt(0).toUpperCase()}${noun.slice(1).padEnd(13)}${demo[`${noun}_id`]}`),
  `  API key       ${demo.api_key}`,
  `  Test key      ${demo.test_api_key}`,
  '                (reads and writes the same data as the API key)',
  `  Public key    ${demo.publishable_key}`,
  `  Stripe        ${demo.stripe_webhook_secret} (signs events as Stripe does)`,
  ...(demo.smtp_port
    ? [`  Inbox         ${demo.inbox_email} at localhost:${demo.smtp_port} (SMTP), :${demo.imap_port} (IMAP)`]
    : []),
  '',
  'Open in a browser (each link works once, within 15 minutes):',
  '',
  `  Dashboard  ${links.dashboard}`,
  `  Portal     ${links.portal}`,
  `  Website    ${demo.base_url}/demo (opens at any time)`,
  '',
  'Try:',
  '',
  ...demos
    .slice(0, 1)
    .map(
      ({ noun, path }) =>
        `  curl ${demo.base_url}${path}/${demo[`${noun}_id`]} -H 'Authorization: Bearer ${demo.api_key}'`,
    ),
];
