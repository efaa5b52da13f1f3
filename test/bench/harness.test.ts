import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import t from 'tap';
import { type Bench, command, type Figure, median, percentile, type Report, spread } from './harness.ts';

t.test('a median is the middle value, or the mean of the middle two', async (t) => {
  t.equal(median([7]), 7);
  t.equal(median([10, 9, 100]), 10);
  t.equal(median([4, 1, 3, 2]), 2.5);
  t.same(median([]), Number.NaN);
});

t.test('a spread holds the median, the extremes and the median distance from the median', async (t) => {
  t.same(spread([1, 2, 4, 100, 3]), { median: 3, min: 1, max: 100, mad: 1 });
  t.same(spread([5]), { median: 5, min: 5, max: 5, mad: 0 });
});

t.test(
  'a percentile is a value that was measured, by the nearest rank, whatever the order of the values',
  async (t) => {
    const values = Array.from({ length: 200 }, (_, index) => 200 - index);
    t.equal(percentile(values, 50), 100);
    t.equal(percentile(values, 99), 198);
    t.equal(percentile(values, 100), 200);
    t.equal(percentile([10, 9], 99), 10);
    t.equal(percentile([10, 9], 0), 9);
    t.same(percentile([], 50), Number.NaN);
  },
);

/** Two sides whose figures are known: the subject is twice, then four times, then three times the baseline. */
function toy(): { bench: Bench; ran: string[] } {
  const ran: string[] = [];
  const given: Record<string, number[]> = { plain: [999, 10, 20, 5], ours: [999, 20, 80, 15] };
  const side = (name: string) => async (seconds: number) => {
    ran.push(`${name} ${seconds}`);
    return { speed: given[name]?.shift() as number, ...(name === 'ours' ? { lag: 1 } : {}) };
  };
  return {
    ran,
    bench: {
      name: 'toy',
      doc: 'Nothing at all.',
      async setup(stack) {
        stack.defer(() => {
          ran.push('taken down');
        });
        return {
          sides: [
            { name: 'plain', doc: 'the least there is', run: side('plain') },
            { name: 'ours', doc: 'the same with everything', baseline: 'plain', run: side('ours') },
          ],
          figures: {
            speed: { unit: '/s', better: 'higher', doc: 'how fast' },
            lag: { unit: 'ms', better: 'lower', doc: 'how late' },
          },
          notes: ['Made up.'],
        };
      },
    },
  };
}

async function runToy(args: string[], bench = toy().bench, stopping?: AbortSignal) {
  const written = { out: '', err: '' };
  const write = (where: 'out' | 'err') => (text: string) => {
    written[where] += text;
  };
  const code = await command(args, [bench], { out: write('out'), err: write('err') }, stopping);
  return { code, ...written };
}

t.test('the sides are measured in turn, after a round that does not count, and then taken down', async (t) => {
  const { bench, ran } = toy();
  await runToy(['toy', '--rounds', '3', '--seconds', '0.5'], bench);
  const round = ['plain 0.5', 'ours 0.5'];
  t.same(ran, [...round, ...round, ...round, ...round, 'taken down']);
});

t.test(
  '--json writes one object with unit, direction, spread and the ratio of each round, and nothing else',
  async (t) => {
    const { code, out, err } = await runToy(['toy', '--rounds', '3', '--json']);
    t.equal(code, 0);
    t.equal(out.trimEnd().split('\n').length, 1);
    const report = JSON.parse(out) as Report;
    t.match(report, { bench: 'toy', doc: 'Nothing at all.', rounds: 3, seconds: 5, notes: ['Made up.'] });
    t.match(report.machine, {
      os: String,
      cpu: String,
      cores: Number,
      memory_gib: Number,
      node: process.versions.node,
    });
    t.same(report.figures, [
      {
        side: 'plain',
        name: 'speed',
        unit: '/s',
        better: 'higher',
        doc: 'how fast',
        ...{ median: 10, min: 5, max: 20, mad: 5 },
        rounds: [10, 20, 5],
      },
      {
        side: 'ours',
        name: 'speed',
        unit: '/s',
        better: 'higher',
        doc: 'how fast',
        ...{ median: 20, min: 15, max: 80, mad: 5 },
        rounds: [20, 80, 15],
        ratio: { median: 3, min: 2, max: 4, mad: 1, baseline: 'plain' },
      },
      {
        side: 'ours',
        name: 'lag',
        unit: 'ms',
        better: 'lower',
        doc: 'how late',
        ...{ median: 1, min: 1, max: 1, mad: 0 },
        rounds: [1, 1, 1],
      },
    ]);
    t.match(err, 'round 3/3  ours', 'progress goes to standard error');
  },
);

t.test('a bench brings its own rounds and seconds, which the command line overrides', async (t) => {
  const { bench, ran } = toy();
  bench.defaults = { rounds: 1, seconds: 2 };
  await runToy(['toy', '--seconds', '0.5'], bench);
  t.same(ran, ['plain 0.5', 'ours 0.5', 'plain 0.5', 'ours 0.5', 'taken down']);
  await runToy(['toy'], bench);
  t.same(ran.slice(5), ['plain 2', 'ours 2', 'plain 2', 'ours 2', 'taken down']);
});

t.test('--only measures one side, and what it is divided by', async (t) => {
  const alone = toy();
  await runToy(['toy', '--rounds', '1', '--only', 'plain'], alone.bench);
  t.same(alone.ran, ['plain 5', 'plain 5', 'taken down']);
  const divided = toy();
  await runToy(['toy', '--rounds', '1', '--only', 'ours'], divided.bench);
  t.same(divided.ran, ['plain 5', 'ours 5', 'plain 5', 'ours 5', 'taken down']);
  await t.rejects(runToy(['toy', '--only', 'our']), { message: "There is no side 'our'. There are: plain, ours." });
});

t.test('the table says of each claim whether it holds', async (t) => {
  const { bench } = toy();
  const { setup } = bench;
  bench.setup = async (stack, progress) => {
    const rig = await setup(stack, progress);
    return { ...rig, figures: { speed: { ...rig.figures.speed, at_most: 10 } as Figure } };
  };
  const { out } = await runToy(['toy', '--rounds', '3'], bench);
  t.match(out, /^plain .* at most 10/m);
  t.match(out, /^ours .* NOT at most 10/m);
});

t.test('without --json there is a table for people', async (t) => {
  const { out } = await runToy(['toy', '--rounds', '3']);
  t.match(out, /^ours +speed +20 +15 – 80 +\/s +higher +3\.00 × plain \(2\.00 – 4\.00\)$/m);
  t.match(out, 'Made up.');
});

t.test('without a name, and with --help, the benches are listed', async (t) => {
  for (const args of [[], ['--help'], ['toy', '--help']]) {
    const { code, out } = await runToy(args);
    t.equal(code, 0);
    t.match(out, /^ {2}toy +Nothing at all\.$/m);
  }
});

t.test('what is asked wrongly ends with 2 and says what is right', async (t) => {
  for (const [args, answer] of [
    [['tow'], "There is no bench 'tow'. There are: toy."],
    [['toy', '--rounds', '0'], '--rounds must be'],
    [['toy', '--seconds', 'x'], '--seconds must be'],
    [['toy', 'toy'], 'Name one bench'],
    [['toy', '--fast'], '--fast'],
  ] as const) {
    const { code, out, err } = await runToy([...args]);
    t.equal(code, 2);
    t.equal(out, '');
    t.match(err, answer);
  }
});

t.test('a bench that is stopped, or fails, is taken down and reports nothing', async (t) => {
  const stopped = toy();
  t.match(await runToy(['toy'], stopped.bench, AbortSignal.abort()), { code: 130, out: '' });
  t.equal(stopped.ran.at(-1), 'taken down');

  const failing = toy();
  const { setup } = failing.bench;
  failing.bench.setup = async (stack, progress) => {
    await setup(stack, progress);
    throw new Error('half way');
  };
  await t.rejects(runToy(['toy'], failing.bench), { message: 'half way' });
  t.same(failing.ran, ['taken down']);
});

t.test('npm run bench lists the benches that there are', async (t) => {
  const { stdout } = await promisify(execFile)(process.execPath, [join(import.meta.dirname, 'run.ts')]);
  t.match(stdout, /^ {2}slice +POST \/v1\/sales/m);
});
