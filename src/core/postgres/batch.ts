export interface CoalesceOptions<Item> {
  /** At once, at most. */
  most: number;
  /** Whether nobody waits for it: then it stays until more is asked for that cannot wait, until there is `most`, or for `patience_ms`. */
  canWait?: (item: Item) => boolean;
  patience_ms?: number;
}

/**
 * Lets calls share statements: what is asked for in one turn of the event loop, or while the work before is still on, is done together.
 * What cannot wait waits for nothing when it is alone; the more there are, the more share the cost of one.
 * @param work does many at once and gives their results in the same order. When it throws, all of them fail.
 */
export function coalesce<Item, Result>(
  work: (items: Item[]) => Promise<Result[]>,
  { most, canWait = () => false, patience_ms = 0 }: CoalesceOptions<Item>,
): (item: Item) => Promise<Result> {
  let waiting: { item: Item; settled: PromiseWithResolvers<Result> }[] = [];
  let busy = false;
  let patience: NodeJS.Timeout | undefined;
  const next = async () => {
    busy = true;
    clearTimeout(patience);
    patience = undefined;
    const taken = waiting.slice(0, most);
    waiting = waiting.slice(most);
    try {
      const results = await work(taken.map(({ item }) => item));
      for (const [nth, { settled }] of taken.entries()) settled.resolve(results[nth] as Result);
    } catch (error) {
      for (const { settled } of taken) settled.reject(error);
    }
    busy = false;
    if (isDue(waiting)) next();
    else if (waiting.length > 0) patience = setTimeout(next, patience_ms);
  };
  const isDue = (asked: typeof waiting): boolean => waiting.length >= most || asked.some(({ item }) => !canWait(item));
  return (item) => {
    const asked = { item, settled: Promise.withResolvers<Result>() };
    waiting.push(asked);
    if (!busy && isDue([asked])) {
      busy = true;
      setImmediate(next);
    } else if (!busy) {
      patience ??= setTimeout(next, patience_ms);
    }
    return asked.settled.promise;
  };
}
