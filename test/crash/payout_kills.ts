import type { Fault } from '../program/payouts/rails/provider_server.ts';
import type { Kill } from './payout_round.ts';

const unavailable = { status: 503, body: { name: 'SERVICE_UNAVAILABLE', message: 'Later.' } };

/** The faults of the provider during a round. A round begins with fetching a token. */
const troubles: (Fault | undefined)[][] = [
  [],
  [undefined, { kind: 'drop', when: 'after' }],
  [undefined, { kind: 'answer', when: 'after', answer: unavailable }],
  [{ kind: 'answer', when: 'before', answer: unavailable }, undefined, { kind: 'drop', when: 'before' }],
  [undefined, undefined, { kind: 'drop', when: 'after' }, { kind: 'answer', when: 'after', answer: unavailable }],
];

/** So many kills, spread over the statements and calls of a round; one in four at a call where there are calls. */
export function killsOf(
  { statements, calls }: { statements: number; calls: number },
  count: number,
): { kill: Kill; trouble: (Fault | undefined)[] }[] {
  return Array.from({ length: count }, (_, at) => {
    const side = at % 2 === 0 ? 'before' : 'after';
    const is_call = calls > 0 && at % 4 === 3;
    const nth = is_call ? 1 + (((at - 3) / 4) % calls) : 1 + Math.floor((at * statements) / count);
    const kill: Kill = is_call
      ? { at: 'call', side: at % 8 === 3 ? 'after' : 'before', nth }
      : { at: 'statement', side, nth };
    return { kill, trouble: troubles[at % troubles.length] ?? [] };
  });
}

/** In an order in which the first ones are spread too, for a test that ends when its time is over. */
export const spread = <Kill>(kills: Kill[]): Kill[] =>
  kills
    .map((kill, at) => ({ kill, turn: (at * 5) % kills.length }))
    .sort((a, b) => a.turn - b.turn)
    .map(({ kill }) => kill);
