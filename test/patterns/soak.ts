/** The deep proof: `recheck` looks at every pattern for as long as it needs to tell. */
import { checked } from './all.ts';
import { slowLibraries } from './libraries.ts';
import { piecesOf } from './pieces.ts';

process.env.RECHECK_BACKEND = 'pure';
const { check } = await import('recheck');

const most_ms = 60_000;
const most_shown = 160;

export async function soakPatterns(): Promise<void> {
  console.log('slow libraries:', await slowLibraries());
  const known = new Map<string, string>();
  const counts: Record<string, number> = { safe: 0, vulnerable: 0, unknown: 0 };
  for (const [text, pattern] of checked) {
    for (const { source, flags } of piecesOf(pattern)) {
      const key = `/${source}/${flags}`;
      const { status } = known.has(key)
        ? { status: known.get(key) as string }
        : await check(source, flags, { checker: 'automaton', timeout: most_ms });
      if (!known.has(key)) {
        counts[status] = (counts[status] ?? 0) + 1;
        if (status !== 'safe')
          console.log(`${status}: ${pattern.at}: ${key.slice(0, most_shown)} of ${text.slice(0, most_shown)}`);
      }
      known.set(key, status);
    }
  }
  console.log(counts);
  if (counts.vulnerable) process.exitCode = 1;
}
