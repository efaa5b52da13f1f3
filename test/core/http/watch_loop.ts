/** Loaded into a process of the service beside its own code: says on standard error how long its event loop was kept busy at a time. */

const every_ms = 10;
/** The longest stall of so long is told, once the next one begins. */
const window_ms = 500;

interface Stall {
  stall_ms: number;
  from: number;
  to: number;
}

/** CPU time of the thread: a process that waits for a processor of a busy machine blocks nothing itself. */
const cpuMs = (): number => {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
};

const none: Stall = { stall_ms: 0, from: 0, to: 0 };
let longest = none;
let told_at = Date.now();
let before = { at: Date.now(), cpu_ms: cpuMs() };
setInterval(() => {
  const now = { at: Date.now(), cpu_ms: cpuMs() };
  const stall = { stall_ms: Math.round(now.cpu_ms - before.cpu_ms), from: before.at, to: now.at };
  if (stall.stall_ms > longest.stall_ms) longest = stall;
  before = now;
  if (now.at - told_at < window_ms) return;
  process.stderr.write(`${JSON.stringify({ msg: 'event loop stalled', ...longest })}\n`);
  longest = none;
  told_at = now.at;
}, every_ms).unref();
