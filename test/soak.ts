/** `npm run soak -- NAME`: what tests do in seconds, for as long as it takes. */
import { randomInt } from 'node:crypto';

const soaks: Record<string, { doc: string; run: () => Promise<unknown> }> = {
  worker: {
    doc: 'kills the worker before and after every statement of the slice; some minutes',
    run: () => import('./crash/soak.ts'),
  },
  api: {
    doc: 'requests made up from the description, from another seed each time; RAIL_SOAK_SECONDS (600), RAIL_SOAK_SEED',
    run: () => {
      process.env.RAIL_SOAK_SEED ??= String(randomInt(2 ** 31));
      process.env.RAIL_SOAK_SECONDS ??= '600';
      process.stdout.write(`RAIL_SOAK_SEED=${process.env.RAIL_SOAK_SEED}\n`);
      return import('./core/http/generated.test.ts');
    },
  },
};

const [name = 'worker'] = process.argv.slice(2);
const soak = soaks[name];
if (soak) {
  await soak.run();
} else {
  const names = Object.entries(soaks).map(([each, { doc }]) => `  ${each.padEnd(8)} ${doc}\n`);
  process.stderr.write(`There is no soak '${name}'. There are:\n${names.join('')}`);
  process.exitCode = 2;
}
