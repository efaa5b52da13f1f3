import fc from 'fast-check';
import t, { type Test } from 'tap';
import type { RailName, RailOutcome } from '../../../../src/program/payouts/rails/rail.ts';
import { rails } from '../../../../src/program/payouts/rails/rails.ts';
import { effort, seeded } from '../../../runner/effort.ts';
import { Attempt, startServer } from './attempt.ts';
import { PayPalServer } from './paypal_server.ts';
import type { Fault } from './provider_server.ts';
import { StripeServer } from './stripe_server.ts';
import { WiseServer } from './wise_server.ts';

/** The faults of one call without the provider lying: it never refuses what it has done. */
const faults: Fault[] = [
  { kind: 'drop', when: 'before' },
  { kind: 'drop', when: 'after' },
  { kind: 'answer', when: 'before', answer: { status: 429, headers: { 'retry-after': '1' }, body: {} } },
  { kind: 'answer', when: 'before', answer: { status: 503, body: 'unavailable' } },
  { kind: 'answer', when: 'after', answer: { status: 500, body: {} } },
  { kind: 'answer', when: 'after', answer: { status: 200, body: '{"half":' } },
];
const servers = { paypal: PayPalServer, stripe: StripeServer, wise: WiseServer };
const most_tries = 60;

interface Run {
  /** For each of the first calls: what goes wrong, if anything. */
  trouble: (Fault | undefined)[];
  /** The number of stored states before the process is killed for the first time. */
  kill_at: number;
  /** True if the account covers the amount. */
  is_covered: boolean;
  /** Seconds between two tries. */
  pause_s: number;
}

const anyRun = fc.record({
  trouble: fc.array(fc.option(fc.constantFrom(...faults), { nil: undefined, freq: 2 }), { maxLength: 9 }),
  kill_at: fc.nat({ max: 4 }),
  is_covered: fc.boolean(),
  pause_s: fc.constantFrom(1, 60, 700),
});

for (const name of ['paypal', 'wise', 'stripe'] as const) {
  t.test(`${name}: pays once or not at all, and says which, whatever is lost on the way`, async (t) => {
    const server = await startServer(t, new servers[name]());
    await fc.assert(
      fc.asyncProperty(anyRun, (run) => holds(t, name, server, run)),
      { numRuns: effort.doubtful_attempts, ...seeded },
    );
    t.pass(`${effort.doubtful_attempts} runs`);
  });
}

async function holds(
  t: Test,
  name: RailName,
  server: PayPalServer | WiseServer | StripeServer,
  { trouble, kill_at, is_covered, pause_s }: Run,
): Promise<boolean> {
  for (const currency of Object.keys(server.balances)) server.balances[currency] = is_covered ? 1_000_000 : 10;
  const attempt = new Attempt(rails[name], server);
  server.script(trouble);
  let [left, outcome]: [number, RailOutcome | undefined] = [kill_at, undefined];
  for (let tries = 0; tries < most_tries && !isDefinite(outcome); tries += 1) {
    attempt.pass(pause_s);
    outcome = await attempt.submit(() => left-- === 0).catch(() => undefined);
    if (outcome?.status === 'processing' && name !== 'wise') outcome = await attempt.lookUp();
  }
  server.script([]);
  const times = server.movedFor(attempt.key)?.times ?? 0;
  if (is_covered ? isSettled(outcome) && times === 1 : !isSettled(outcome) && times === 0) return true;
  t.comment({ outcome, times });
  return false;
}

/**
 * Returns whether an outcome is settled. If the account does not cover the amount, a first call that was lost may stay in doubt; it is never taken
 * for a payment.
 */
const isSettled = (outcome: RailOutcome | undefined): boolean =>
  outcome?.status === 'paid' || outcome?.status === 'processing';
const isDefinite = (outcome: RailOutcome | undefined): boolean => isSettled(outcome) || outcome?.status === 'failed';
