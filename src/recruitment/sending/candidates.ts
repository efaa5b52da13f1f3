/**
 * The sequences whose turn it is in a queue, each with all that it is checked and rendered by.
 *
 * - One that the window or the company's limit holds up gets the next opening as its time. One whose campaign has begun its new ones of the day keeps its
 *   time.
 * - One that has not begun and whose address was deleted since is scheduled anew: it goes to another address of the prospect, or fails where there is none.
 * - A cancelled message of a sequence that goes on (its campaign was paused in the last moment) is sent later as the same row.
 */
import sql from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import { type Step, templatesOf, variantFor } from '../campaigns/step.ts';
import { type ProspectValues, prospect_values, templateValues } from '../campaigns/template_values.ts';
import { isOpen, nextMidnight, nextOpening, zoneOf } from '../campaigns/window.ts';
import { replySubject, storedMessageIdOf, storedThreadHeaders } from '../composing/message_ids.ts';
import type { TemplateValues } from '../composing/template_fields.ts';
import { TemplateFault } from '../composing/template_fields.ts';
import { renderTemplates } from '../composing/templates.ts';
import { being_barred, endOf, is_barred, type Reason } from '../contact/suppression.ts';
import { isUnpaused, type SendFailure } from '../sequences/sequence.ts';
import type { End } from '../sequences/stop.ts';
import { newLeft, type Queue, type Sending } from './limits.ts';

type ProspectOrNone = { [Name in keyof ProspectValues]: ProspectValues[Name] | null };

/** Its prospect is not known where it was erased. */
export interface Candidate extends ProspectOrNone {
  id: string;
  inbox_id: string;
  campaign_id: string;
  brand_id: string;
  prospect_id: string | null;
  thread_id: string | null;
  email_address_id: string | null;
  /** In hexadecimal, as are the others. */
  address_hmac: string | null;
  domain_hmac: string | null;
  company_hmac: string | null;
  next_step: number;
  step: Step;
  max_per_domain_day: number;
  allow_risky: boolean;
  verification: string | null;
  bounced_at: string | null;
  is_suppressed: boolean;
  /** For what an entry has barred it whose job is still to end it. */
  being_barred: Reason | null;
  do_not_contact: boolean;
  unsubscribed: boolean;
  sent_to_company: number;
  message_id: string | null;
  message_state: string | null;
  resends: number | null;
  /** The last email that is known to have left: what may be nothing is answered by nothing. */
  previous: {
    rfc_message_id: string;
    reference_ids: string[];
    other_message_ids: string[];
    subject: string | null;
  } | null;
  /** The subject of the first email: a follow-up has none of its own. */
  first_subject: string | null;
  timezone: string | null;
  brand_name: string;
  website_url: string;
  sender_company: string | null;
  program_name: string | null;
}

/**
 * Locks up to `most` due sequences of each queue: follow-ups before first emails, then by the time that they were due. Skips those that others
 * have locked. To be called with suppressions held.
 */
export const lockCandidates = (
  tx: Tx,
  inbox_ids: string[],
  campaigns: Sending[],
  most: number,
): Promise<Candidate[]> => {
  const given = campaigns.map((campaign) => ({
    ...{ id: campaign.id, steps: campaign.steps, takes_new: newLeft(campaign) > 0, day: campaign.day },
  }));
  const firstOf = (state: 'active' | 'waiting') => sql`(
    select t.id, t.state, t.due_at
    from recruitment.sequence t
    where ${tenant(tx)} and t.inbox_id = l.inbox_id and t.campaign_id = c.id and t.state = ${state} and t.open and t.due_at <= ${tx.now}::timestamptz
      and t.next_step < c.steps and (c.takes_new or t.next_step > 0)
      and ${isUnpaused(sql`t`, tx.now)}
    order by t.due_at
    limit ${most})`;
  return tx.all<Candidate>(sql`
    with c as materialized (
      select g.id, g.steps, g.takes_new, g.day
      from json_to_recordset(${JSON.stringify(given)}::json) as g (id text, steps integer, takes_new boolean, day date)
    ), due as materialized (
      select first.id
      from unnest(${inbox_ids}::text[]) as l (inbox_id)
      cross join lateral (
        select x.id from c cross join lateral (${firstOf('active')} union all ${firstOf('waiting')}) as x
        order by x.state, x.due_at, x.id
        limit ${most}
      ) as first
    )
    select t.id, t.inbox_id, t.campaign_id, t.brand_id, t.prospect_id, t.thread_id, t.email_address_id,
      encode(t.address_hmac, 'hex') as address_hmac, encode(t.domain_hmac, 'hex') as domain_hmac, encode(t.company_hmac, 'hex') as company_hmac,
      t.next_step, k.steps -> t.next_step as step, k.max_per_domain_day, k.allow_risky, a.verification, a.bounced_at,
      ${is_barred} as is_suppressed, ${being_barred} as being_barred,
      p.do_not_contact_reason is not null as do_not_contact, p.unsubscribed_at is not null as unsubscribed,
      coalesce((
        select d.sent from recruitment.company_day d
        where d.organization_id = t.organization_id and d.campaign_id = t.campaign_id and d.day = c.day and d.company_hmac = t.company_hmac
      ), 0) as sent_to_company,
      m.id as message_id, m.state as message_state, m.resends,
      (
        select json_build_object('rfc_message_id', e.rfc_message_id, 'reference_ids', e.reference_ids, 'other_message_ids', e.other_message_ids,
          'subject', e.subject)
        from recruitment.message e
        where e.organization_id = t.organization_id and e.sequence_id = t.id and e.step_index < t.next_step and e.purpose = 'sequence'
          and e.state in ('sent', 'bounced')
        order by e.step_index desc
        limit 1
      ) as previous,
      (
        select e.subject from recruitment.message e
        where e.organization_id = t.organization_id and e.sequence_id = t.id and e.step_index = 0 and t.next_step > 0 and e.purpose = 'sequence'
      ) as first_subject,
      ${prospect_values}, p.timezone, b.name as brand_name, b.website_url, b.sender_company, g.name as program_name
    from due
    join recruitment.sequence t on t.organization_id = ${tx.organization_id} and t.id = due.id
    join recruitment.campaign k on k.organization_id = t.organization_id and k.id = t.campaign_id
    join c on c.id = t.campaign_id
    join recruitment.brand b on b.organization_id = t.organization_id and b.id = t.brand_id
    left join program.program g on g.organization_id = b.organization_id and g.id = b.program_id
    left join recruitment.prospect p on p.organization_id = t.organization_id and p.id = t.prospect_id
    left join recruitment.email_address a on a.organization_id = t.organization_id and a.id = t.email_address_id
    left join recruitment.message m on m.organization_id = t.organization_id and m.sequence_id = t.id and m.step_index = t.next_step
      and m.purpose = 'sequence'
    where t.open and t.due_at <= ${tx.now}::timestamptz and t.next_step < c.steps
    order by t.state, t.due_at, t.id
    for no key update of t skip locked`);
};

type Checked =
  | { is: 'fit' }
  /** Not now: its turn comes again then. */
  | { is: 'later'; due_at: Date }
  /** The address that was chosen is gone, and nothing was sent to it: another one is. */
  | { is: 'unscheduled' }
  /** Ends silently, as the job of its suppression would end it. */
  | { is: 'over'; end: End }
  | { is: 'unfit'; reason: SendFailure };

/** "At its turn no address, suppressed, or a template error: failed." What the window and the company's limit hold up is moved. */
export function check(candidate: Candidate, campaign: Sending, now: Date): Checked {
  if (hasLostAddress(candidate)) return { is: 'unscheduled' };
  if (candidate.being_barred) return { is: 'over', end: endOf(candidate.being_barred) };
  const reason = unfitFor(candidate);
  if (reason) return { is: 'unfit', reason };
  const zone = zoneOf(campaign.schedule, candidate, campaign.default_timezone);
  if (!isOpen(campaign.schedule, zone, now)) return { is: 'later', due_at: nextOpening(campaign.schedule, zone, now) };
  if (candidate.company_hmac !== null && candidate.sent_to_company >= candidate.max_per_domain_day)
    return { is: 'later', due_at: nextOpening(campaign.schedule, zone, nextMidnight(campaign.zone, now)) };
  if (candidate.next_step === 0 && newLeft(campaign) === 0)
    return { is: 'later', due_at: nextOpening(campaign.schedule, zone, nextMidnight(campaign.zone, now)) };
  return { is: 'fit' };
}

const hasLostAddress = ({ prospect_id, email_address_id, next_step, message_state }: Candidate): boolean =>
  prospect_id !== null &&
  email_address_id === null &&
  next_step === 0 &&
  (message_state ?? 'cancelled') === 'cancelled';

function unfitFor(candidate: Candidate): SendFailure | undefined {
  const { verification, allow_risky } = candidate;
  if (candidate.prospect_id === null || candidate.email_address_id === null) return 'no_address';
  if (candidate.do_not_contact) return 'do_not_contact';
  if (candidate.is_suppressed || candidate.unsubscribed) return 'suppressed';
  if (verification === 'invalid' || candidate.bounced_at !== null) return 'invalid_address';
  if (!allow_risky && (verification === 'disposable' || verification === 'accept_all')) return 'risky_address';
  return undefined;
}

/** The message of a sequence's next step. */
export interface Rendered {
  id: string;
  subject: string;
  body_text: string;
  body_html: string | null;
  variant: number;
  rfc_message_id: string;
  in_reply_to: string | null;
  reference_ids: string[];
}

/** @returns undefined where a template cannot be rendered for the prospect */
export function rendered(candidate: Candidate, queue: Queue, message_id: string): Rendered | undefined {
  const { step, previous } = candidate;
  const variant = variantFor(step, { sequence_id: candidate.id, step_index: candidate.next_step });
  try {
    const templates = templatesOf(step, { step_index: candidate.next_step, variant });
    const mail = renderTemplates(templates, valuesOf(candidate, queue));
    return {
      ...{ id: message_id, variant, body_text: mail.text, body_html: mail.html },
      subject: previous ? replySubject(previous.subject ?? mail.subject) : (candidate.first_subject ?? mail.subject),
      rfc_message_id: storedMessageIdOf(message_id, queue.email, candidate.resends ?? 0),
      ...storedThreadHeaders(previous),
    };
  } catch (error) {
    if (error instanceof TemplateFault) return undefined;
    throw error;
  }
}

const valuesOf = ({ brand_name: name, ...candidate }: Candidate, queue: Queue): TemplateValues =>
  templateValues(candidate as ProspectValues, { ...candidate, name }, queue);
