/** How long a file may take that does not say so by `t.setTimeout`. The tap in its process keeps to it. */
export const timeout_s = 600;
/** No file takes as long: what still runs then hangs. In a soak, files say by `t.setTimeout` how long they take. */
export const hanging_ms = (process.env.RAIL_TEST_EFFORT === 'soak' ? 150 : 20) * 60_000;

export interface FileResult {
  file: string;
  seconds: number;
  /** Asserts. */
  passed: number;
  failed: number;
  /** CPU seconds of its process and those that it started; 0 unless the run is profiled. */
  cpu_s: number;
  /** What went wrong, as tap says it; empty when nothing did. */
  complaint: string;
}

/** The line by which tap says what it has counted. */
export const counts_line = /^# \{ total: \d+, pass: (\d+)(?:, fail: (\d+))?.*\}$/m;

/** A process that ends otherwise than with success, or before it has counted its asserts, is a failure also when no assert was one. */
export function outcomeOf(output: string, code: number | null, signal: string | null) {
  const total = counts_line.exec(output);
  const passed = Number(total?.[1] ?? 0);
  const counted = Number(total?.[2] ?? 0);
  const isBroken = code !== 0 || total === null;
  const failed = isBroken ? Math.max(counted, 1) : counted;
  const end = signal ? `ended by ${signal}` : `exit code ${code}`;
  return { passed, failed, complaint: failed === 0 ? '' : `${withoutSuccesses(output)}\n# ${end}` };
}

function withoutSuccesses(output: string): string {
  return output
    .split('\n')
    .filter((line) => !/^\s*(ok \d+|\d+\.\.\d+$|TAP version|$)/.test(line))
    .join('\n');
}
