export interface BatchOptions<Item> {
  /** Items of a batch at most. */
  most: number;
  /** Returns whether no caller waits for the item: then it is kept until an item comes that cannot wait, until there are `most`, or for `max_wait_ms`. */
  canWait?: (item: Item) => boolean;
  max_wait_ms?: number;
}

export interface Batched<Item, Result> {
  (item: Item): Promise<Result>;
  /** Begins with what can wait, now that somebody waits for it. */
  hurry(): void;
}

/**
 * Batches calls, so that they share statements: calls of one turn of the event loop, and calls that come while a batch is at work, are
 * done together. A single call that cannot wait is delayed by nothing; the more calls there are, the more share the cost of one.
 * @param work does a batch and gives the results in the same order. When it throws, all calls of the batch fail.
 */
export function batched<Item, Result>(
  work: (items: Item[]) => Promise<Result[]>,
  { most, canWait = () => false, max_wait_ms = 0 }: BatchOptions<Item>,
): Batched<Item, Result> {
  let calls: { item: Item; result: PromiseWithResolvers<Result> }[] = [];
  let busy = false;
  let is_hurried = false;
  let timer: NodeJS.Timeout | undefined;
  const runBatch = async () => {
    busy = true;
    is_hurried = false;
    clearTimeout(timer);
    timer = undefined;
    const batch = calls.slice(0, most);
    calls = calls.slice(most);
    try {
      const results = await work(batch.map(({ item }) => item));
      for (const [nth, { result }] of batch.entries()) result.resolve(results[nth] as Result);
    } catch (error) {
      for (const { result } of batch) result.reject(error);
    }
    busy = false;
    if (isDue(calls) || (is_hurried && calls.length > 0)) runBatch();
    else if (calls.length > 0) timer = setTimeout(runBatch, max_wait_ms);
  };
  const isDue = (some: typeof calls): boolean => some.length >= most || some.some(({ item }) => !canWait(item));
  const begin = () => {
    busy = true;
    clearTimeout(timer); // it may come first, and must not begin a second batch
    setImmediate(runBatch);
  };
  const call = (item: Item) => {
    const call = { item, result: Promise.withResolvers<Result>() };
    calls.push(call);
    if (!busy && isDue([call])) begin();
    else if (!busy) timer ??= setTimeout(runBatch, max_wait_ms);
    return call.result.promise;
  };
  return Object.assign(call, {
    hurry() {
      if (busy) is_hurried = true;
      else if (calls.length > 0) begin();
    },
  });
}
