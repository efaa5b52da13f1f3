import type { Tx } from '../../core/postgres/transaction.ts';
import { type Evidence, type Prospect, prospects } from './prospect.ts';

/** The pieces of evidence that a prospect keeps: the first ones found. */
const most = 50;

/**
 * Adds evidence to a prospect, and what a visit found out besides.
 * @param facts fields that are not known yet are filled; the score is replaced
 * @returns how much of the evidence is new; undefined where the prospect is gone
 */
export async function addEvidence(
  tx: Tx,
  prospect_id: string,
  evidence: Evidence[],
  facts: Partial<Pick<Prospect, 'name' | 'description' | 'country_code' | 'language_code' | 'score'>> = {},
): Promise<number | undefined> {
  const [prospect] = await prospects.lockMany(tx, [prospect_id]);
  if (!prospect) return undefined;
  const known = new Set(prospect.evidence.map(identity));
  const added = evidence.filter((one) => !known.has(identity(one)) && known.add(identity(one)));
  const { score = prospect.score, ...described } = facts;
  const missing = Object.entries(described).filter(([field]) => prospect[field as keyof Prospect] === null);
  await prospects.update(tx, prospect_id, {
    ...Object.fromEntries(missing),
    ...(added.length > 0 ? { evidence: JSON.stringify([...prospect.evidence, ...added].slice(0, most)) } : {}),
    score,
  });
  return added.length;
}

/** A page may have several keywords. The text begins with the keyword; the words around it may change from one visit to the next. */
const identity = ({ kind, url, text }: Evidence): string =>
  kind === 'keyword' ? `${kind} ${url} ${text.split(': ', 1)[0]}` : `${kind} ${url}`;
