import pg from 'pg';
import { api } from './api.ts';
import type { Bench, Rig, Side } from './harness.ts';
import { dropTriggers } from './report_notes.ts';
import { slice } from './slice.ts';

/** Loads of another bench, each into two databases of its own in turn, one of which has no triggers of reports. */
const besideNoReports = (
  bench: Bench,
  loads: string[],
  { name, defaults }: Required<Pick<Bench, 'name' | 'defaults'>>,
): Bench => ({
  name,
  doc: `Loads of the bench ${bench.name} beside the same without reports: ${loads.join(', ')}.`,
  defaults,
  async setup(stack, progress, size) {
    const plain = await bench.setup(stack, progress, size);
    await inDatabase(plain, dropTriggers);
    const noted = await bench.setup(stack, progress, size);
    for (const rig of [plain, noted])
      await inDatabase(rig, async (client) => {
        await client.query('select program.fold_reports(2147483647), program.fold_tallies(2147483647)');
        await client.query('vacuum (analyze)');
      });
    return {
      ...noted,
      sides: loads.flatMap((load): Side[] => {
        const [without, side] = [sideOf(plain, load), sideOf(noted, load)];
        return [
          { name: `plain.${load}`, doc: `${side.doc}, without triggers of reports`, run: without.run },
          { ...side, baseline: `plain.${load}` },
        ];
      }),
    };
  },
});

const sideOf = ({ sides }: Rig, name: string): Side => sides.find((side) => side.name === name) as Side;

async function inDatabase({ postgres_url }: Rig, work: (client: pg.Client) => Promise<void>): Promise<void> {
  const client = new pg.Client({ connectionString: postgres_url });
  await client.connect();
  try {
    await work(client);
  } finally {
    await client.end();
  }
}

export const report_slice = besideNoReports(slice, ['sales', 'sales_unheard'], {
  ...{ name: 'report_slice', defaults: { rounds: 40, seconds: 2 } },
});
export const report_api = besideNoReports(
  api,
  ['clicks', 'customers', 'sales', 'commissions'].map((plural) => `${plural}.create`),
  { name: 'report_api', defaults: { rounds: 20, seconds: 4 } },
);
