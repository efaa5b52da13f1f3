/** Tells partners that the rate at which they earn has changed: once for each change of a rule, and only those for whom it is another one. */
import sql, { type Sql } from 'sql-template-tag';
import { z } from 'zod';
import { sha256 } from '../../core/encryption/vault.ts';
import { most_at_once } from '../../core/jobs/task.ts';
import type { Tx } from '../../core/postgres/transaction.ts';
import type { Services } from '../../core/resource/services.ts';
import { queueMail } from '../../mail/outgoing.ts';
import {
  type Addressee,
  addressee,
  addressees,
  composed,
  isNotForgotten,
  isSameRate,
} from '../partners/mails/partner_mail.ts';
import type { Rule } from './rule_choice.ts';
import { payingRules, type StandingRate, standingRate } from './standing_rate.ts';

const rule = z.custom<Rule>().nullable();

/** A change of a rule, as a job carries it. */
export const RuleChange = z.object({
  organization_id: z.string(),
  program_id: z.string(),
  /** Made with the change: the ids of its mails follow from it, so that a job which runs twice writes each once. */
  id: z.string(),
  at: z.string(),
  /** Null: it was created. */
  before: rule,
  /** Null: it was deleted. */
  after: rule,
});

export type RuleChange = z.infer<typeof RuleChange>;

type Earner = Addressee & { group_id: string | null; tag_ids: string[] };

/**
 * Mails some of the partners whom a change of a rule concerns, in the order of their ids. The other rules are taken as they are now.
 * @param after_id the last partner of the batch before
 * @returns the last partner of this one; undefined where there are no more
 */
export async function mailRateChange(
  tx: Tx,
  services: Pick<Services, 'base_url'>,
  change: RuleChange,
  after_id: string,
): Promise<string | undefined> {
  const { organization_id, program_id, at } = change;
  const earners = await tx.all<Earner>(sql`
    select ${addressee}, p.group_id, array(
        select x.tag_id from program.partner_tag x where x.organization_id = p.organization_id and x.partner_id = p.id
      ) as tag_ids
    from ${addressees}
    where p.organization_id = ${organization_id} and p.program_id = ${program_id} and p.status = 'active' and p.id > ${after_id}
      and p.created_at <= ${at}::timestamptz and ${named(change)} and g.partner_emails and ${isNotForgotten(at)}
    order by p.id
    limit ${most_at_once}`);
  const ids = earners.map(({ id }) => id);
  const paying = await payingRules(tx, organization_id, program_id, ids);
  const others = paying.filter(({ id }) => id !== ruleOf(change).id);
  for (const earner of earners) {
    const theirs = others.filter(({ partner_ids }) => partner_ids.length === 0 || partner_ids.includes(earner.id));
    const withRule = (one: Rule | null) => (one === null ? theirs : [...theirs, one]);
    const before = standingRate(withRule(change.before), earner, at);
    const after = standingRate(withRule(change.after), earner, at);
    if (isSame(before, after)) continue;
    const first = { before: before.first, after: after.first };
    const renewal = { before: before.renewal, after: after.renewal };
    const mail = composed(earner, { kind: 'rate_changed', first, renewal }, services);
    await queueMail(tx, { organization_id, id: mailId(change.id, earner.id), recipient: earner.recipient, ...mail });
  }
  return earners.length < most_at_once ? undefined : earners.at(-1)?.id;
}

const ruleOf = ({ before, after }: RuleChange): Rule => (after ?? before) as Rule;

/** A rule that names partners concerns nobody else. */
function named({ before, after }: RuleChange): Sql {
  const lists = [before, after].flatMap((one) => (one === null ? [] : [one.partner_ids]));
  return lists.every((ids) => ids.length > 0) ? sql`p.id = any(${lists.flat()})` : sql`true`;
}

const isSame = (one: StandingRate, other: StandingRate): boolean =>
  isSameRate(one.first, other.first) && isSameRate(one.renewal, other.renewal);

/** An id with the time of the change, and the rest by the change and the partner. */
function mailId(change_id: string, partner_id: string): string {
  const digits = '0123456789abcdefghjkmnpqrstvwxyz';
  const rest = [...sha256(change_id, ' ', partner_id).subarray(0, 16)].map((byte) => digits.charAt(byte % 32));
  return change_id.slice(0, -16) + rest.join('');
}
