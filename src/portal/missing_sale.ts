/** A sale that a partner misses. What was found of it stays with the merchant: else anybody could ask whether an address is of a customer. */
import type { FastifyInstance, FastifyReply } from 'fastify';
import type { Problem } from '../core/values/problem.ts';
import { day } from '../pages/format.ts';
import { html } from '../pages/html.ts';
import { formOf } from '../pages/sign_in.ts';
import { table } from '../pages/table.ts';
import type { SaleClaim } from '../program/sales/sale_claim.ts';
import { type Errors, errorsOf, form, one, type Typed, typedIn } from './fields.ts';
import { cursorOf, doneNotice, pager, sendPortal } from './frame.ts';
import { enough, type PortalVisit, performBeyond, readPage, type Visiting } from './visit.ts';

const fields = ['external_charge_id', 'email', 'coupon_code', 'occurred_at', 'note'] as const;
/** Claims of a partner that wait for a decision. */
const most_open = 20;

export function mountMissingSale(app: FastifyInstance, visiting: Visiting): void {
  app.get('/portal/missing_sale', async (request, reply) => show(reply, visiting(request), request.query));

  app.post('/portal/missing_sale', async (request, reply) => {
    const visit = visiting(request);
    const typed = typedIn(formOf(request));
    const { me, open } = await readPage(visit, async (use, { program, partner }) => ({
      open: (
        await use('sale_claims.list', {
          query: { program_id: program.id, partner_id: partner.id, status: 'open', limit: 1 },
        })
      ).total_count,
    }));
    const { missing_sale: said } = me.texts;
    const wrong = (errors: Errors, status = 400) => show(reply, visit, {}, { typed, errors }, status);
    const given = Object.fromEntries(
      fields.flatMap((name) => (one(typed, name) === undefined ? [] : [[name, one(typed, name) as string]])),
    );
    if (!given.external_charge_id && !given.email && !given.coupon_code)
      return wrong({ external_charge_id: said.one_of });
    if (given.occurred_at !== undefined) given.occurred_at = `${given.occurred_at}T12:00:00Z`;
    const body = { program_id: me.program.id, partner_id: visit.partner_id, ...given };
    const refusal = enough(open >= most_open);
    try {
      const { finding } = await performBeyond(visit, 'sale_claims.create', body, one(typed, 'form_key'), refusal);
      return reply.redirect(`/portal/missing_sale?done=${finding === 'credited' ? 'found' : 'sent'}`, 303);
    } catch (problem) {
      if (problem === refusal) return wrong({ '': said.too_many });
      return wrong(errorsOf(problem, me.texts, fields), (problem as Problem).status);
    }
  });
}

async function show(
  reply: FastifyReply,
  visit: PortalVisit,
  query: unknown,
  { typed = {}, errors = {} }: { typed?: Typed; errors?: Errors } = {},
  status = 200,
): Promise<FastifyReply> {
  const { me, claims } = await readPage(visit, async (use, { program, partner }) => ({
    claims: await use('sale_claims.list', {
      query: { program_id: program.id, partner_id: partner.id, ...cursorOf(query) },
    }),
  }));
  const { texts, reader } = me;
  const { missing_sale: said, general } = texts;
  const columns = [
    { title: general.date, cell: ({ created_at }: SaleClaim) => day(created_at, reader) },
    {
      title: general.status,
      cell: ({ status: state }: SaleClaim) => html`<span class="status">${said.statuses[state]}</span>`,
    },
    { title: said.order, cell: (claim: SaleClaim) => claim.external_charge_id ?? claim.email ?? claim.coupon_code },
  ];
  const content = html`${doneNotice(query, { sent: said.sent, found: said.found })}<p>${said.intro}</p>
${form(texts, {
  action: '/portal/missing_sale',
  button: said.send,
  typed,
  errors,
  fields: [
    { name: 'external_charge_id', label: said.order },
    { name: 'email', label: said.email, kind: 'email' },
    { name: 'coupon_code', label: said.coupon },
    { name: 'occurred_at', label: said.occurred, hint: said.occurred_hint, kind: 'date' },
    { name: 'note', label: said.note, kind: 'long' },
  ],
})}
<h2>${said.yours}</h2>
${table(said.yours, columns, claims.data, said.none)}${pager(texts, '/portal/missing_sale', query, claims)}`;
  return sendPortal(reply, me, { title: texts.menu.missing_sale, at: 'missing_sale', content }, status);
}
