import { join } from 'node:path';
import type { Command } from 'commander';
import { example, filled, imageReference, integerUpTo } from './arguments.ts';

const replicas = integerUpTo(100);

/** Adds the commands that print what runs the service elsewhere. */
export function addDeployCommands(rail: Command): void {
  const deploy = rail
    .command('deploy')
    .summary('prints Kubernetes manifests or systemd units')
    .description(
      'Prints what runs the service in Kubernetes or under systemd, with the settings of the environment: set BASE_URL. Settings that hold a ' +
        'password or a key are never printed: they are read from files, which the output says how to make.',
    );

  deploy
    .command('kubernetes')
    .summary('prints Kubernetes manifests')
    .description(
      'Prints manifests for kubectl apply: settings, a job that migrates, APIs and workers with probes and limits, a service, and disruption budgets. ' +
        'Postgres and the ingress are yours: put a proxy with TLS before the service rail-api, and set TRUSTED_PROXIES.',
    )
    .option('--image <image>', 'the image, best by its digest', imageReference, 'rail')
    .option('--namespace <name>', 'namespace of all objects', filled, 'rail')
    .option('--apis <number>', 'replicas of the API', replicas, 2)
    .option('--workers <number>', 'replicas of the worker', replicas, 2)
    .addHelpText(
      'after',
      example(
        'BASE_URL=https://rail.example.com TRUSTED_PROXIES=1 npx --no rail deploy kubernetes --image registry.example.com/rail@sha256:… | kubectl apply --filename -',
      ),
    )
    .action(async (options) => (await import('../commands/deploy/kubernetes.ts')).printKubernetes(options));

  deploy
    .command('systemd')
    .summary('prints systemd units')
    .description(
      'Prints systemd units: one that migrates, templates for APIs (rail-api@3000 listens on port 3000) and workers, and rail.target, which starts ' +
        'all. Secrets are read from files in /etc/rail, such as /etc/rail/database_url, which only root need be able to read.',
    )
    .option('--output <directory>', 'write the files to a directory instead')
    .option('--directory <path>', 'directory of the checkout', filled, join(import.meta.dirname, '../..'))
    .option('--node <path>', 'program of Node 24', filled, process.execPath)
    .option('--user <name>', 'user that it runs as', filled, 'rail')
    .option('--apis <number>', 'number of APIs', replicas, 2)
    .option('--workers <number>', 'number of workers', replicas, 1)
    .addHelpText(
      'after',
      example('BASE_URL=https://rail.example.com TRUSTED_PROXIES=1 npx --no rail deploy systemd --output /tmp/units'),
    )
    .action(async (options) => (await import('../commands/deploy/systemd.ts')).printSystemd(options));
}
