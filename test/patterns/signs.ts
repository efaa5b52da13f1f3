/** One sign of a pattern: an escape, a class, a count, or a letter. */
const sign =
  /\\[pP]\{[^}]*\}|\\u\{[^}]*\}|\\u[0-9a-fA-F]{4}|\\x[0-9a-fA-F]{2}|\\k<[^>]*>|\\[\s\S]|\[(?:\\[\s\S]|[^\]\\])*\]|\{\d+(?:,\d*)?\}|[\s\S]/gu;

export const signsOf = (source: string): string[] => source.match(sign) ?? [];
