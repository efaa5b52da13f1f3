import sql from 'sql-template-tag';
import { ownerEmail } from '../../../core/access/organization.ts';
import { type Store, type Tx, transaction } from '../../../core/postgres/transaction.ts';
import { queueMail } from '../../../mail/outgoing.ts';
import { type Program, programs } from '../../programs/program.ts';
import { reportQuery, runReport } from '../report.ts';
import type { Summary } from './summary.ts';
import { htmlOf } from './summary_html.ts';
import { subjectOf, textOf } from './summary_text.ts';

interface Due {
  organization_id: string;
  program_id: string;
}

/** An ISO week of UTC, as half open bounds. */
interface Week {
  name: string;
  from: string;
  to: string;
}

/** Mails the week before `tick` to the owner of each program that wants it and has not got it. What fails of one keeps no other from its mail. @returns how many mails were queued @throws AggregateError */
export async function sendWeeklySummaries(
  store: Store,
  { run_id, tick }: { run_id: string; tick: string },
): Promise<number> {
  const request_id = run_id;
  const service = { organization_id: null, request_id };
  const { week, due } = await transaction(store, service, (tx) => dueSummaries(tx, tick));
  const failures: unknown[] = [];
  for (const { organization_id, program_id } of due) {
    const reading = { organization_id, request_id, one_state: true };
    await transaction(store, reading, (tx) => summaryOf(tx, program_id, week))
      .then((summary) => transaction(store, service, (tx) => queueSummary(tx, organization_id, summary)))
      .catch((error) => failures.push(error));
  }
  if (failures.length > 0) throw new AggregateError(failures, `${failures.length} of ${due.length} summaries failed.`);
  return due.length;
}

async function dueSummaries(tx: Tx, tick: string): Promise<{ week: Week; due: Due[] }> {
  const week = await tx.one<Week>(sql`
    select to_char(w.monday, 'IYYY-"W"IW') as name, w.monday at time zone 'UTC' as from, (w.monday + interval '7 days') at time zone 'UTC' as to
    from (select date_trunc('week', ${tick}::timestamptz at time zone 'UTC') - interval '7 days' as monday) as w`);
  const due = await tx.all<Due>(sql`
    select t.organization_id, t.id as program_id
    from program.program t
    where t.weekly_summary and t.created_at < ${week.to}::timestamptz
      -- One that was due before a restore was mailed before it, and forgotten.
      and not exists (select from core.hold() h where ${tick}::timestamptz < h.restored_at)
      and not exists (
        select from program.weekly_summary s
        where s.organization_id = t.organization_id and s.program_id = t.id and s.week = ${week.name}
      )
    order by t.organization_id, t.id`);
  return { week, due };
}

const partners_shown = 5;

async function summaryOf(tx: Tx, program_id: string, { name: week, from, to }: Week): Promise<Summary> {
  const program: Program = await programs.get(tx, program_id);
  const query = { program_id, from, to };
  const overview = await runReport(tx, reportQuery.parse({ ...query, report: 'overview' }));
  const by_partner = { ...query, report: 'partners', compare: 'none', limit: partners_shown };
  const partners = await runReport(tx, reportQuery.parse(by_partner));
  return { program, week, overview, partners };
}

/** Once: who is second writes nothing. */
async function queueSummary(tx: Tx, organization_id: string, summary: Summary): Promise<void> {
  const { program, week } = summary;
  const claimed = await tx.maybe(sql`
    insert into program.weekly_summary (organization_id, program_id, week, mail_id, created_at)
    values (${organization_id}, ${program.id}, ${week}, '', ${tx.now}::timestamptz)
    on conflict do nothing
    returning week`);
  if (!claimed) return;
  const recipient = await ownerEmail(tx, organization_id);
  const mail = {
    organization_id,
    recipient,
    subject: subjectOf(summary),
    text: textOf(summary),
    html: htmlOf(summary),
  };
  const mail_id = await queueMail(tx, mail);
  await tx.all(sql`
    update program.weekly_summary s set mail_id = ${mail_id}
    where s.organization_id = ${organization_id} and s.program_id = ${program.id} and s.week = ${week}`);
}
