/**
 * Lets calls share statements: what is asked for in one turn of the event loop, or while the work before is still on, is done together.
 * Alone a call waits for nothing; the more there are, the more share the cost of one.
 * @param work does many at once and gives their results in the same order. When it throws, all of them fail.
 */
export function coalesce<Item, Result>(
  work: (items: Item[]) => Promise<Result[]>,
  { most }: { most: number },
): (item: Item) => Promise<Result> {
  let waiting: { item: Item; settled: PromiseWithResolvers<Result> }[] = [];
  let busy = false;
  const next = async () => {
    const taken = waiting.slice(0, most);
    waiting = waiting.slice(most);
    try {
      const results = await work(taken.map(({ item }) => item));
      for (const [nth, { settled }] of taken.entries()) settled.resolve(results[nth] as Result);
    } catch (error) {
      for (const { settled } of taken) settled.reject(error);
    }
    busy = waiting.length > 0;
    if (busy) next();
  };
  return (item) => {
    const settled = Promise.withResolvers<Result>();
    waiting.push({ item, settled });
    if (!busy) {
      busy = true;
      setImmediate(next);
    }
    return settled.promise;
  };
}
