/** Shows what a partner has earned and was paid: commissions with the reason for each, and payouts with their statements. */
import type { FastifyInstance, FastifyRequest } from 'fastify';
import sql from 'sql-template-tag';
import type { Tx } from '../core/postgres/transaction.ts';
import { day, money, number, time } from '../pages/format.ts';
import { type Html, html } from '../pages/html.ts';
import { notice } from '../pages/layout.ts';
import { type Reply, sendFile, type Use } from '../pages/run.ts';
import { facts, table } from '../pages/table.ts';
import type { Commission } from '../program/commissions/commission.ts';
import { rateIn } from '../program/partners/mails/rate_text.ts';
import type { Payout } from '../program/payouts/payout.ts';
import { cursorOf, pager, sendPortal } from './frame.ts';
import { type Me, readPage, type Visiting } from './visit.ts';

const idOf = (request: FastifyRequest): string => (request.params as { id: string }).id;
const most_listed = 100;

export function mountEarnings(app: FastifyInstance, visiting: Visiting): void {
  app.get('/portal/commissions', async (request, reply) => {
    const { me, commissions } = await readPage(visiting(request), async (use, { partner, program }) => ({
      commissions: await use('commissions.list', {
        query: { program_id: program.id, partner_id: partner.id, ...cursorOf(request.query) },
      }),
    }));
    const { texts } = me;
    const content = html`${commissionTable(me, commissions.data)}${pager(texts, '/portal/commissions', request.query, commissions)}`;
    return sendPortal(reply, me, { title: texts.menu.commissions, at: 'commissions', content });
  });

  app.get('/portal/commissions/:id', async (request, reply) => {
    const { me, commission, explanation } = await readPage(visiting(request), async (use) => {
      const commission: Commission = await use('commissions.get', { params: { id: idOf(request) } });
      return { commission, explanation: await explanationOf(use, commission) };
    });
    const { commissions: said } = me.texts;
    const content = html`${facts(commissionFacts(me, commission))}
${explanation && html`<h2>${said.why}</h2>${facts(reasons(me, commission, explanation))}`}
<p><a href="/portal/commissions">${me.texts.general.back}</a></p>`;
    const title = money(commission.amount_minor, commission.currency, me.reader);
    return sendPortal(reply, me, { title, at: 'commissions', content });
  });

  app.get('/portal/payouts', async (request, reply) => {
    const { me, payouts } = await readPage(visiting(request), async (use, { partner, program }) => ({
      payouts: await use('payouts.list', {
        query: { program_id: program.id, partner_id: partner.id, ...cursorOf(request.query) },
      }),
    }));
    const { texts } = me;
    const content = html`${payoutTable(me, payouts.data)}${pager(texts, '/portal/payouts', request.query, payouts)}`;
    return sendPortal(reply, me, { title: texts.menu.payouts, at: 'payouts', content });
  });

  app.get('/portal/payouts/:id', async (request, reply) => {
    const id = idOf(request);
    const { me, payout, held_reason, listed } = await readPage(visiting(request), async (use, _, tx) => {
      const payout: Payout = await use('payouts.get', { params: { id } });
      return { payout, ...(await insideOf(tx, payout)) };
    });
    return sendPortal(reply, me, {
      title: money(payout.amount_minor, payout.currency, me.reader),
      at: 'payouts',
      content: payoutContent(me, payout, held_reason, listed),
    });
  });

  app.get('/portal/payouts/:id/statement', async (request, reply) => {
    const visit = visiting(request);
    await readPage(visit, async (use) => ({ payout: await use('payouts.get', { params: { id: idOf(request) } }) }));
    const { format } = request.query as { format?: unknown };
    return sendFile(visit, reply, 'payouts.get_statement', {
      params: { id: idOf(request) },
      query: { format: format === 'csv' ? 'csv' : 'pdf' },
    });
  });
}

function commissionTable({ texts, reader }: Me, rows: Commission[]): Html {
  const { commissions: said, general, menu } = texts;
  const columns = [
    {
      title: general.date,
      cell: ({ id, created_at }: Commission) =>
        html`<a href="/portal/commissions/${id}">${day(created_at, reader)}</a>`,
    },
    { title: said.kind, cell: ({ kind }: Commission) => said.kinds[kind] },
    {
      title: general.amount,
      is_number: true,
      cell: ({ amount_minor, currency }: Commission) => money(amount_minor, currency, reader),
    },
    {
      title: general.status,
      cell: ({ status }: Commission) => html`<span class="status">${said.statuses[status]}</span>`,
    },
    { title: said.matures, cell: ({ mature_at }: Commission) => day(mature_at, reader) },
  ];
  return table(menu.commissions, columns, rows, said.none);
}

function commissionFacts(me: Me, commission: Commission): [string, unknown][] {
  const { texts } = me;
  const { commissions: said, general } = texts;
  const { void_reason, hold_reason, payout_id } = commission;
  const reason = void_reason ?? hold_reason;
  const known = said.reasons as Record<string, string>;
  return [
    [said.kind, said.kinds[commission.kind]],
    [general.status, said.statuses[commission.status]],
    [general.date, time(commission.created_at, me.reader)],
    [said.matures, time(commission.mature_at, me.reader)],
    ...(reason === null
      ? []
      : [[said.reason, Object.hasOwn(known, reason) ? known[reason] : reason] as [string, unknown]]),
    ...(payout_id === null
      ? []
      : [
          [said.in_payout, html`<a href="/portal/payouts/${payout_id}">${texts.menu.payouts}</a>`] as [string, unknown],
        ]),
  ];
}

/** Says why the sale of a commission earned that much; nothing of a bonus. */
const explanationOf = async (use: Use, { sale_id }: Commission): Promise<Reply | undefined> =>
  sale_id === null ? undefined : use('sales.explain', { params: { id: sale_id } });

/** Without the candidates and the rules that did not decide: they may be of others. */
function reasons({ texts, reader, program }: Me, commission: Commission, explanation: Reply): [string, unknown][] {
  const { commissions: said } = texts;
  const { base, credited_by, is_first_sale, month_before, rules } = explanation;
  const amount = (minor: number) => money(minor, base.currency, reader);
  const { rate_type, rate_value, base_amount_minor } = commission;
  const deductions = base.amount_minor - base.net_amount_minor;
  const chosen = rules.find(({ outcome }: { outcome: string }) => outcome === 'chosen');
  return [
    ...(credited_by === null
      ? []
      : [[said.credited, said.credited_by[credited_by as keyof typeof said.credited_by]] as [string, unknown]]),
    [texts.customers.customer, is_first_sale ? said.first_sale : said.renewal],
    [said.sale_amount, amount(base.amount_minor)],
    ...(deductions === 0 ? [] : [[said.deductions, amount(-deductions)] as [string, unknown]]),
    ...(base.refunded_minor === 0 ? [] : [[said.refunded, amount(-base.refunded_minor)] as [string, unknown]]),
    [
      said.base,
      html`${amount(base_amount_minor ?? base.base_minor)}<br><span class="hint">${base.of === 'net_amount' ? said.of_net : said.of_amount}</span>`,
    ],
    ...(chosen === undefined ? [] : [[said.rule, chosen.name] as [string, unknown]]),
    ...(rate_type === null || rate_value === null
      ? []
      : [[said.rate, rateIn(reader.language, { rate_type, rate_value }, program.currency)] as [string, unknown]]),
    ...(month_before === null
      ? []
      : [[said.month_before, number(month_before.sales_count, reader)] as [string, unknown]]),
  ];
}

function payoutTable({ texts, reader }: Me, rows: Payout[]): Html {
  const { payouts: said, general, menu } = texts;
  const columns = [
    {
      title: said.due,
      cell: ({ id, due_at }: Payout) => html`<a href="/portal/payouts/${id}">${day(due_at, reader)}</a>`,
    },
    {
      title: general.amount,
      is_number: true,
      cell: ({ amount_minor, currency }: Payout) => money(amount_minor, currency, reader),
    },
    { title: general.status, cell: ({ status }: Payout) => html`<span class="status">${said.statuses[status]}</span>` },
    { title: said.paid, cell: ({ paid_at }: Payout) => paid_at && day(paid_at, reader) },
    {
      title: said.statement,
      cell: ({ id }: Payout) =>
        html`<a href="/portal/payouts/${id}/statement">PDF</a> <a href="/portal/payouts/${id}/statement?format=csv">CSV</a>`,
    },
  ];
  return table(menu.payouts, columns, rows, said.none);
}

interface Inside {
  held_reason: string | null;
  /** The first of its commissions. */
  listed: Commission[];
}

async function insideOf(tx: Tx, { id }: Payout): Promise<Inside> {
  const [held, listed] = await Promise.all([
    tx.one<{ held_reason: string | null }>(sql`
      select t.held_reason from program.payout t where t.organization_id = ${tx.organization_id} and t.id = ${id}`),
    tx.all<Commission>(sql`
      select t.id, t.kind, t.amount_minor, t.currency, t.status, t.mature_at, t.created_at
      from program.payout_commission l
      join program.commission t on t.organization_id = l.organization_id and t.id = l.commission_id
      where l.organization_id = ${tx.organization_id} and l.payout_id = ${id}
      order by t.id
      limit ${most_listed}`),
  ]);
  return { ...held, listed };
}

function payoutContent(me: Me, payout: Payout, held_reason: string | null, listed: Commission[]): Html {
  const { texts, reader } = me;
  const { payouts: said, general } = texts;
  const rows: [string, unknown][] = [
    [general.status, said.statuses[payout.status]],
    [said.due, day(payout.due_at, reader)],
    ...(payout.paid_at === null ? [] : [[said.paid, time(payout.paid_at, me.reader)] as [string, unknown]]),
    [said.method, texts.payout_method.methods[payout.method]],
    ...(payout.destination_hint === null ? [] : [[said.account, payout.destination_hint] as [string, unknown]]),
    [said.period, html`${day(payout.period_start, reader)} – ${day(payout.period_end, reader)}`],
    [
      said.statement,
      html`<a href="/portal/payouts/${payout.id}/statement">PDF</a> <a href="/portal/payouts/${payout.id}/statement?format=csv">CSV</a>`,
    ],
  ];
  const waits = payout.status === 'pending' && held_reason === 'payout_method_changed';
  return html`${waits && notice(said.waits, true)}${payout.status === 'failed' && notice(said.failed, true)}
${facts(rows)}
<h2>${said.commissions}</h2>
${commissionTable(me, listed)}
<p><a href="/portal/payouts">${general.back}</a></p>`;
}
