/**
 * The repetitions of tests that make up their input: in `npm test` as many as each kind needs, in `npm run soak -- repeats` as many as there is time
 * for. A case that a test names, such as a side of a statement that a process is killed at, comes up at least once in both.
 */

const efforts = {
  /** Runs of the model of an endpoint's queue, of up to 20 commands each. */
  queue_model_runs: { test: 2, soak: 100 },
  /** Kills of a worker amid payouts by a provider: the fourth is amid a call. Each trouble of the provider comes up in five. */
  payout_kills: { test: 4, soak: 16 },
  /** Kills of a worker amid payouts by file. */
  payout_file_kills: { test: 1, soak: 14 },
  /** Kills of workers amid a batch of payouts, one after the other. */
  payout_batch_kills: { test: 1, soak: 4 },
  /** Kills of a worker amid the slice, on both sides of a statement. */
  worker_kills: { test: 2, soak: 14 },
  /** Times that Postgres is killed amid sales. */
  postgres_kills: { test: 1, soak: 4 },
  /** Kills of a worker amid reading answers. */
  reading_kills: { test: 1, soak: 30 },
  /** Events that each of 12 endpoints receives while a worker is killed. */
  events_of_killed_worker: { test: 50, soak: 500 },
  /** The stride over the statements at which an activation is killed. */
  activation_stride: { test: 3, soak: 1 },
  /** Texts that a pattern may be slow on: first those that it repeats itself. */
  texts_of_pattern: { test: 5, soak: 60 },
  /** Requests of a race, all at the same time: in a soak, more than the connections that they share. */
  racing_requests: { test: 12, soak: 50 },
  hostile_addresses: { test: 1_000, soak: 100_000 },
  /** Mails that are cut, repeated and filled at random. */
  hostile_mails: { test: 60, soak: 10_000 },
  /** Unsubscribes and marks that race with the final dot of an email. */
  raced_unsubscribes: { test: 12, soak: 10_000 },
  /** Requests made up from the description. */
  generated_requests: { test: 60, soak: 1_500 },
  /** Sales to which something is done up to 14 times. */
  sales: { test: 10, soak: 200 },
  /** Histories of sales that arrive in another order. */
  order_runs: { test: 12, soak: 60 },
  /** Runs of the model of payouts, of 25 to 50 steps each. */
  payout_model_runs: { test: 2, soak: 12 },
  /** Commissions of one payout, which a worker settles. */
  commissions_of_payout: { test: 2_010, soak: 100_000 },
  /** Attempts at a provider that fails, with each provider. */
  doubtful_attempts: { test: 10, soak: 150 },
  /** Times in each time zone from which the next opening of a window is sought. */
  times_per_zone: { test: 2, soak: 100 },
  /** Example receivers that are compiled, which takes half a minute of CPU. */
  compiled_receivers: { test: 0, soak: 1 },
  /** Shells that the tours of the README are pasted into, of those that are installed. */
  tour_shells: { test: 1, soak: 3 },
  /** Sales that each of three writers makes, and changes one after each, while backends are killed. */
  writes_amid_kills: { test: 6, soak: 300 },
  /** Histories whose reports are computed again. */
  recounted_histories: { test: 1, soak: 4 },
};

const chosen = process.env.RAIL_TEST_EFFORT === 'soak' ? 'soak' : 'test';

export const effort = Object.fromEntries(Object.entries(efforts).map(([name, each]) => [name, each[chosen]])) as Record<
  keyof typeof efforts,
  number
>;

/** The seed: `npm test` makes up the same each time. A soak makes up something else each time, and prints the seed where it fails. */
export const seeded: { seed?: number } = chosen === 'soak' ? {} : { seed: 1 };
