/** Lets so many works run at a time; the others wait for their turn, in their order. */
export function turns(most: number): <T>(work: () => Promise<T>) => Promise<T> {
  let running = 0;
  const waiting: (() => void)[] = [];
  return async (work) => {
    if (running >= most) await new Promise<void>((resolve) => waiting.push(resolve));
    else running += 1;
    try {
      return await work();
    } finally {
      const next = waiting.shift();
      if (next) next();
      else running -= 1;
    }
  };
}

/** The same for works of each kind: those of one do not wait for those of another. */
export function turnsOfEach(most: number): <T>(kind: string, work: () => Promise<T>) => Promise<T> {
  const kinds = new Map<string, { inTurn: ReturnType<typeof turns>; works: number }>();
  return async (kind, work) => {
    const own = kinds.get(kind) ?? { inTurn: turns(most), works: 0 };
    kinds.set(kind, own);
    own.works += 1;
    try {
      return await own.inTurn(work);
    } finally {
      own.works -= 1;
      if (own.works === 0) kinds.delete(kind);
    }
  };
}
