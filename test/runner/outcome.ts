/** The time of a file that sets none by `t.setTimeout`. The tap in its process keeps to it. */
export const timeout_s = 600;
/** No file takes as long: what still runs then hangs. In a soak, files say by `t.setTimeout` how long they take. */
export const hanging_ms = (process.env.RAIL_TEST_EFFORT === 'soak' ? 150 : 20) * 60_000;

/** CPU seconds. */
export interface Cpu {
  all: number;
  /** The part in processes that it started and that have ended. */
  started: number;
}

export const no_cpu: Cpu = { all: 0, started: 0 };

export interface FileResult {
  file: string;
  seconds: number;
  /** Tests: those that have no test inside, or the file where it has none. */
  passed: number;
  failed: number;
  /** The CPU time of its process; none unless the run is profiled. */
  cpu: Cpu;
  /** The failure, as tap says it; empty when there is none. */
  complaint: string;
}

/** The line by which tap says what it has counted. */
export const counts_line = /^# \{ total: \d+, pass: (\d+)(?:, fail: (\d+))?.*\}$/m;

/** A process that ends otherwise than with success, or before it has counted its asserts, is a failure also when no test was one. */
export function outcomeOf(output: string, code: number | null, signal: string | null) {
  const total = counts_line.exec(output);
  const tests = testsIn(output);
  if (tests.passed + tests.failed === 0 && Number(total?.[1] ?? 0) > 0) tests.passed = 1;
  const isBroken = code !== 0 || total === null || Number(total[2] ?? 0) > 0;
  const failed = isBroken ? Math.max(tests.failed, 1) : tests.failed;
  const end = signal ? `ended by ${signal}` : `exit code ${code}`;
  return { passed: tests.passed, failed, complaint: failed === 0 ? '' : `${withoutSuccesses(output)}\n# ${end}` };
}

/** Counts the tests that have ended, and that have no test inside. */
function testsIn(output: string): { passed: number; failed: number } {
  const tests = { passed: 0, failed: 0 };
  const open: { indent: number; hasTests: boolean }[] = [];
  for (const line of output.split('\n')) {
    const [, spaces = '', what = ''] = /^((?: {4})*)(# Subtest: |ok \d|not ok \d)/.exec(line) ?? [];
    const indent = spaces.length;
    const inner = open.at(-1);
    if (what === '# Subtest: ') {
      if (inner) inner.hasTests = true;
      open.push({ indent, hasTests: false });
    } else if (what !== '' && inner?.indent === indent) {
      open.pop();
      if (!inner.hasTests) tests[what.startsWith('not') ? 'failed' : 'passed']++;
    }
  }
  return tests;
}

function withoutSuccesses(output: string): string {
  return output
    .split('\n')
    .filter((line) => !/^\s*(ok \d+|\d+\.\.\d+$|TAP version|$)/.test(line))
    .join('\n');
}
