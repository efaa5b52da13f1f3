/** How a partner is paid, and the tax form: what is typed here is encrypted, and never shown again. */
import type { FastifyInstance, FastifyReply } from 'fastify';
import sql from 'sql-template-tag';
import type { Tx } from '../core/postgres/transaction.ts';
import { databaseTime } from '../core/values/clock.ts';
import { idTimePart } from '../core/values/id.ts';
import { Problem } from '../core/values/problem.ts';
import { inOneLine } from '../core/values/texts/one_line.ts';
import { time } from '../pages/format.ts';
import { type Html, html } from '../pages/html.ts';
import { notice } from '../pages/layout.ts';
import { perform, type Reply } from '../pages/run.ts';
import { formOf } from '../pages/sign_in.ts';
import { facts } from '../pages/table.ts';
import type { PayoutMethodName } from '../program/programs/program.ts';
import { type Errors, errorsOf, form, one, type PortalField, type Typed, typedIn } from './fields.ts';
import { doneNotice, sendPortal } from './frame.ts';
import { sentFile } from './sent_file.ts';
import type { PortalTexts } from './texts/texts.ts';
import { enough, type Me, type PortalVisit, readPage, type Visiting } from './visit.ts';

type Detail = keyof PortalTexts['payout_method']['fields'];

/** The fields of each kind of account; the first one identifies it and is typed twice. */
const accounts: Record<string, { method: PayoutMethodName; details: Detail[] }> = {
  bank_transfer: { method: 'bank_transfer', details: ['iban', 'bic', 'account_holder'] },
  bank_transfer_us: { method: 'bank_transfer', details: ['account_number', 'routing_number', 'account_holder'] },
  wire: { method: 'wire', details: ['iban', 'bic', 'account_holder'] },
  wire_us: { method: 'wire', details: ['account_number', 'routing_number', 'account_holder'] },
  paypal: { method: 'paypal', details: ['email'] },
  wise: { method: 'wise', details: ['account_id'] },
  stripe: { method: 'stripe', details: ['account_id'] },
  crypto: { method: 'crypto', details: ['address', 'network'] },
};

interface Form {
  kind: string | undefined;
  typed?: Typed;
  errors?: Errors;
}

export function mountPayoutMethod(app: FastifyInstance, visiting: Visiting): void {
  app.get('/portal/payout_method', async (request, reply) => {
    const { method } = request.query as { method?: unknown };
    const kind = typeof method === 'string' && Object.hasOwn(accounts, method) ? method : undefined;
    return show(reply, visiting(request), request.query, { kind });
  });

  app.post('/portal/payout_method', async (request, reply) => {
    const visit = visiting(request);
    const typed = typedIn(formOf(request));
    const kind = one(typed, 'kind') ?? '';
    const account = Object.hasOwn(accounts, kind) ? accounts[kind] : undefined;
    if (!account) return reply.redirect('/portal/payout_method', 303);
    const { me, changes } = await readPage(visit, async (_, __, tx) => ({ changes: await changesOf(tx, visit) }));
    const wrong = (errors: Errors, status: number) => show(reply, visit, {}, { kind, typed, errors }, status);
    const [first = 'iban'] = account.details;
    const details = Object.fromEntries(account.details.map((name) => [name, one(typed, name) ?? '']));
    const missing = account.details.filter((name) => details[name] === '');
    const differs = withoutBlanks(one(typed, first)) !== withoutBlanks(one(typed, 'again'));
    if (differs || missing.length > 0) {
      const errors = Object.fromEntries(missing.map((name) => [name, me.texts.general.required]));
      return wrong(differs ? { ...errors, again: me.texts.payout_method.differs } : errors, 400);
    }
    const refusal = enough(changes >= most_changes_a_day);
    try {
      const body = { method: account.method, details };
      await perform(
        visit,
        'partners.put_payout_method',
        { params: { id: visit.partner_id }, body },
        one(typed, 'form_key'),
        refusal,
      );
    } catch (problem) {
      if (problem === refusal) return wrong({ '': me.texts.general.too_many }, 429);
      const named = Object.fromEntries(account.details.map((name) => [`details.${name}`, name]));
      return wrong(errorsOf(problem, me.texts, account.details, named), (problem as Problem).status);
    }
    return reply.redirect('/portal/payout_method?done=saved', 303);
  });

  app.get('/portal/tax_form', async (request, reply) => showTaxForm(reply, visiting(request), request.query));

  app.post('/portal/tax_form', { bodyLimit: 6 * 1024 * 1024 }, async (request, reply) => {
    const visit = visiting(request);
    const { me } = await readPage(visit, async () => ({}));
    const { file, form_key } = await sentFile(request);
    const wrong = (text: string) => showTaxForm(reply, visit, {}, { file: text }, 400);
    if (!file) return wrong(me.texts.general.required);
    const name = inOneLine(file.name).slice(0, 200) || 'form';
    const body = { name, media_type: file.media_type, content: file.content.toString('base64') };
    try {
      await perform(visit, 'partners.submit_tax_form', { params: { id: visit.partner_id }, body }, form_key);
    } catch (problem) {
      if (!(problem instanceof Problem) || problem.status >= 500) throw problem;
      return wrong(me.texts.tax_form.wrong_file);
    }
    return reply.redirect('/portal/tax_form?done=saved', 303);
  });
}

/** Changes of the payout method in a day: each of them mails the account before, whose address the partner has typed. */
const most_changes_a_day = 5;

async function changesOf(tx: Tx, { partner_id }: PortalVisit): Promise<number> {
  const since = `aud_${idTimePart(Date.parse(tx.now) - 86_400_000)}`;
  const { count } = await tx.one<{ count: number }>(sql`
    select count(*)::int as count from core.audit_entry a
    where a.organization_id = ${tx.organization_id} and a.object_id = ${partner_id} and a.id >= ${since}
      and a.partner_id = ${partner_id} and a.operation = 'partners.put_payout_method'`);
  return count;
}

/** An account number is pasted with blanks, and typed without. */
const withoutBlanks = (text: string | undefined): string | undefined => text?.replaceAll(/\s/g, '');

async function show(
  reply: FastifyReply,
  visit: PortalVisit,
  query: unknown,
  { kind, typed, errors }: Form,
  status = 200,
) {
  const { me, current } = await readPage(visit, async (use) => ({
    current: (await use('partners.get_payout_method', { params: { id: visit.partner_id } }).catch(noneYet)) as
      | Reply
      | undefined,
  }));
  const { texts } = me;
  const { payout_method: said } = texts;
  const offered = Object.keys(accounts).filter((one) => me.program.payout_methods.includes(methodOf(one)));
  const content = html`${doneNotice(query, { saved: texts.general.saved })}${shownMethod(me, current)}
${kind === undefined || !offered.includes(kind) ? choice(me, offered) : accountForm(me, kind, typed, errors)}
${current && html`<p class="hint">${said.warning}</p>`}`;
  return sendPortal(reply, me, { title: texts.menu.payout_method, at: 'payout_method', content }, status);
}

function noneYet(error: unknown): undefined {
  if (!(error instanceof Problem) || error.status !== 404) throw error;
}

function shownMethod({ texts, reader }: Me, current: Reply | undefined): Html {
  const { payout_method: said, payouts } = texts;
  if (!current) return html`<p class="none">${said.none}</p>`;
  const { method, hint, held_until } = current as { method: PayoutMethodName; hint: string; held_until: string | null };
  const is_held = held_until !== null && Date.parse(held_until) > databaseTime();
  return html`${is_held && notice(html`${said.held(time(held_until, reader))}`, true)}${facts([
    [said.current, said.methods[method]],
    [payouts.account, hint],
  ])}`;
}

const methodOf = (kind: string): PayoutMethodName => (accounts[kind] as { method: PayoutMethodName }).method;

/** Each way is a page of its own, so that the fields of one stand alone. */
function choice({ texts }: Me, offered: string[]): Html {
  const { payout_method: said } = texts;
  return html`<h2>${said.choose}</h2><ul class="actions">${offered.map(
    (kind) =>
      html`<li><a class="button plain" href="/portal/payout_method?method=${kind}">${accountName(texts, kind)}</a></li>`,
  )}</ul>`;
}

function accountName({ payout_method: said }: PortalTexts, kind: string): string {
  const { method, details } = accounts[kind] as { method: PayoutMethodName; details: Detail[] };
  if (method !== 'bank_transfer' && method !== 'wire') return said.methods[method];
  return `${said.methods[method]} – ${said.fields[details[0] as Detail]}`;
}

function accountForm({ texts, partner }: Me, kind: string, typed: Typed = {}, errors: Errors = {}): Html {
  const { payout_method: said } = texts;
  const { details } = accounts[kind] as { details: Detail[] };
  const field = (name: Detail): PortalField => ({
    name,
    label: said.fields[name],
    hint: name === 'account_id' ? said.account_id_hint : undefined,
    required: true,
    autocomplete: 'off',
  });
  const [first, ...others] = details as [Detail, ...Detail[]];
  const again: PortalField = {
    name: 'again',
    label: `${said.fields[first]} – ${said.again}`,
    required: true,
    autocomplete: 'off',
  };
  const holder = [partner.first_name, partner.last_name].filter(Boolean).join(' ') || (partner.company_name ?? '');
  return html`<h2>${accountName(texts, kind)}</h2>
${form(texts, {
  action: '/portal/payout_method',
  button: texts.general.save,
  hidden: { kind },
  fields: [field(first), again, ...others.map(field)],
  typed: Object.keys(typed).length > 0 ? typed : { account_holder: [holder] },
  errors,
})}
<p><a href="/portal/payout_method">${texts.general.back}</a></p>`;
}

async function showTaxForm(reply: FastifyReply, visit: PortalVisit, query: unknown, errors: Errors = {}, status = 200) {
  const { me, state } = await readPage(visit, async (use) => ({
    state: await use('partners.get_tax_form', { params: { id: visit.partner_id } }),
  }));
  const { texts, program } = me;
  const { tax_form: said, general } = texts;
  const { status: stands } = state as { status: keyof typeof said.statuses };
  const is_wanted = stands === 'none' || stands === 'rejected';
  const rows: [string, unknown][] = [
    [general.status, said.statuses[stands]],
    ...(state.updated_at === null ? [] : [[general.date, time(state.updated_at, me.reader)] as [string, unknown]]),
  ];
  const content = html`${doneNotice(query, { saved: general.saved })}${facts(rows)}
${program.require_tax_forms && is_wanted && html`<p>${said.required}</p>`}
${form(texts, {
  action: '/portal/tax_form',
  button: said.submit,
  enctype: 'multipart/form-data',
  fields: [{ name: 'file', label: said.file, hint: said.file_hint, kind: 'file', required: true }],
  errors,
})}
<p class="hint">${said.private}</p>`;
  return sendPortal(reply, me, { title: texts.menu.tax_form, at: 'tax_form', content }, status);
}
