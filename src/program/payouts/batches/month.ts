/** The start of the month that a scheduled run is in: a run by hand names any time. */
export const startOfMonth = (tick: string): string => `${new Date(tick).toISOString().slice(0, 7)}-01T00:00:00.000Z`;

const day_ms = 86_400_000;

/** The end of the last month that a run by hand may name. */
export function latestMonthly(now: Date): Date {
  const month = new Date(startOfMonth(new Date(now.getTime() + day_ms).toISOString()));
  return new Date(Date.UTC(month.getUTCFullYear(), month.getUTCMonth() + 1) - 1);
}
