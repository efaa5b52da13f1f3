/** Links and coupons of a partner, and the customers who came by them. */
import { randomUUID } from 'node:crypto';
import type { FastifyInstance } from 'fastify';
import { sha256 } from '../core/encryption/vault.ts';
import { Problem } from '../core/values/problem.ts';
import { day, number } from '../pages/format.ts';
import { html } from '../pages/html.ts';
import { type Reply, sendFile, type Use } from '../pages/run.ts';
import { formOf } from '../pages/sign_in.ts';
import { table } from '../pages/table.ts';
import type { Link } from '../program/partners/link.ts';
import { type Errors, errorsOf, form, one, type Typed, typedIn, withScheme } from './fields.ts';
import { copyable, cursorOf, doneNotice, type PortalPage, pager, sendPortal } from './frame.ts';
import { masked } from './masked.ts';
import { enough, type Me, type PortalVisit, performBeyond, readPage, type Visiting } from './visit.ts';

const fields = ['destination_url', 'value', 'label'];
/** Links that a partner makes here. The merchant can make more. */
const most_links = 500;

export function mountLinks(app: FastifyInstance, visiting: Visiting): void {
  app.get('/portal/links', async (request, reply) => {
    const { me, ...page } = await linksPage(visiting(request as never), request.query);
    return sendPortal(reply, me, page);
  });

  app.post('/portal/links', async (request, reply) => {
    const visit = visiting(request as never);
    const sent = formOf(request);
    const typed = typedIn(sent);
    const { me, count, hosts } = await readPage(visit, async (use, me) => ({
      count: (await use('links.list', { query: { program_id: me.program.id, partner_id: me.partner.id, limit: 1 } }))
        .total_count,
      hosts: await hostsOf(use, me),
    }));
    const wrong = async (errors: Errors, status: number) => {
      const { me: again, ...page } = await linksPage(visit, {}, { typed, errors });
      return sendPortal(reply, again, page, status);
    };
    const destination_url = withScheme(one(typed, 'destination_url')) ?? me.program.website_url;
    if (!isOn(destination_url, hosts))
      return wrong({ destination_url: me.texts.links.elsewhere(hosts.join(', ')) }, 400);
    const label = one(typed, 'label');
    const value = one(typed, 'value');
    const body = {
      program_id: me.program.id,
      partner_id: visit.partner_id,
      destination_url,
      ...(label === undefined ? {} : { label }),
    };
    const form_key = one(typed, 'form_key');
    const refusal = enough(count >= most_links);
    const create = (one: string) => performBeyond(visit, 'links.create', { ...body, value: one }, form_key, refusal);
    const { handle } = me.partner;
    try {
      await (value === undefined ? firstFree(endingsFor(handle, form_key), create) : create(value));
    } catch (problem) {
      if (problem === refusal) return wrong({ '': me.texts.links.most }, 402);
      return wrong(errorsOf(problem, me.texts, fields), (problem as { status: number }).status);
    }
    return reply.redirect('/portal/links?done=created', 303);
  });

  app.get('/portal/links/:id', async (request, reply) => {
    const { id } = request.params as { id: string };
    const { me, link } = await readPage(visiting(request as never), async (use) => ({
      link: (await use('links.get', { params: { id }, query: { include: ['stats'] } })) as LinkRow,
    }));
    return sendPortal(reply, me, { title: link.label ?? link.value, at: 'links', content: linkFacts(me, link) });
  });

  app.get('/portal/links/:id/qr', async (request, reply) => {
    const visit = visiting(request as never);
    const { id } = request.params as { id: string };
    await readPage(visit, async (use) => ({ link: await use('links.get', { params: { id } }) }));
    const { format } = request.query as { format?: unknown };
    return sendFile(visit, reply, 'links.get_qr', {
      params: { id },
      query: { format: format === 'png' ? 'png' : 'svg' },
    });
  });

  app.get('/portal/coupons', async (request, reply) => {
    const { me, coupons } = await readPage(visiting(request as never), async (use, { partner, program }) => ({
      coupons: await use('coupons.list', {
        query: { program_id: program.id, partner_id: partner.id, include: ['stats'], ...cursorOf(request.query) },
      }),
    }));
    const { links: said } = me.texts;
    type Row = { code: string; active: boolean; stats: { customers: number } };
    const columns = [
      { title: said.code, cell: ({ code }: Row) => html`<code>${code}</code>` },
      { title: me.texts.general.status, cell: ({ active }: Row) => (active ? said.active : said.inactive) },
      { title: said.uses, is_number: true, cell: ({ stats }: Row) => number(stats.customers, me.reader) },
    ];
    const content = html`${table(me.texts.menu.coupons, columns, coupons.data, said.no_coupons)}${pager(me.texts, '/portal/coupons', request.query, coupons)}`;
    return sendPortal(reply, me, { title: me.texts.menu.coupons, at: 'coupons', content });
  });

  app.get('/portal/customers', async (request, reply) => {
    const { me, customers } = await readPage(visiting(request as never), async (use, { partner, program }) => ({
      customers: await use('customers.list', {
        query: { program_id: program.id, partner_id: partner.id, ...cursorOf(request.query) },
      }),
    }));
    const { customers: said, general, menu } = me.texts;
    type Row = { email: string | null; name: string | null; status: keyof typeof said.statuses; created_at: string };
    const columns = [
      { title: said.customer, cell: (row: Row) => masked(row) },
      { title: general.status, cell: ({ status }: Row) => html`<span class="status">${said.statuses[status]}</span>` },
      { title: said.since, cell: ({ created_at }: Row) => day(created_at, me.reader) },
    ];
    const content = html`<p class="hint">${said.masked}</p>${table(menu.customers, columns, customers.data, said.none)}${pager(me.texts, '/portal/customers', request.query, customers)}`;
    return sendPortal(reply, me, { title: menu.customers, at: 'customers', content });
  });
}

/** Endings of a link that is given none: the partner's own, else others that the same form leads to again, so that a second click makes no second link. */
function endingsFor(handle: string, form_key: string = randomUUID()): string[] {
  const hash = sha256(form_key);
  return [handle, `${handle}-${hash.readUInt16BE() % 1000}`, `${handle}-${hash.toString('hex', 2, 6)}`];
}

/** Tries one ending after another, until one is not taken. */
async function firstFree(
  [ending = '', ...others]: string[],
  create: (ending: string) => Promise<Reply>,
): Promise<Reply> {
  try {
    return await create(ending);
  } catch (error) {
    const is_taken = error instanceof Problem && error.code === 'resource_already_exists';
    if (!is_taken || others.length === 0) throw error;
    return firstFree(others, create);
  }
}

const hostOf = (url: string): string => (URL.parse(url)?.hostname ?? '').replace(/^www\./, '');

/**
 * The hosts that a partner's own links may lead to: the program's website, and the landing page of the partner's group. A short link has a host that visitors
 * trust; it would lead them anywhere. The merchant can make links to other pages.
 */
async function hostsOf(use: Use, { program, partner }: Me): Promise<string[]> {
  const group = partner.group_id && (await use('groups.get', { params: { id: partner.group_id } }));
  return [...new Set([program.website_url, group?.landing_url ?? program.website_url].map(hostOf))];
}

/** Leaves it to the operation to refuse what is no URL. A backslash is a slash to browsers, and part of a user's name to other programs. */
function isOn(url: string, hosts: string[]): boolean {
  const host = hostOf(url);
  if (url.includes('\\')) return false;
  return host === '' || hosts.some((one) => host === one || host.endsWith(`.${one}`));
}

type LinkRow = Link & { stats: { clicks: number; referrals: number; customers: number } };

async function linksPage(
  visit: PortalVisit,
  query: unknown,
  { typed = {}, errors = {} }: { typed?: Typed; errors?: Errors } = {},
): Promise<{ me: Me } & PortalPage> {
  const { me, links } = await readPage(visit, async (use, { partner, program }) => ({
    links: await use('links.list', {
      query: { program_id: program.id, partner_id: partner.id, include: ['stats'], ...cursorOf(query) },
    }),
  }));
  const { texts, reader, program } = me;
  const { links: said } = texts;
  const count = (title: string, of: keyof LinkRow['stats']) => ({
    title,
    is_number: true,
    cell: ({ stats }: LinkRow) => number(stats[of], reader),
  });
  const columns = [
    {
      title: said.label,
      cell: (row: LinkRow) => html`<a href="/portal/links/${row.id}">${row.label ?? row.value}</a>`,
    },
    ...[count(said.clicks, 'clicks'), count(said.referrals, 'referrals'), count(said.customers, 'customers')],
    { title: said.url, cell: ({ url }: LinkRow) => copyable(url, texts) },
  ];
  const content = html`${doneNotice(query, { created: said.created })}
${table(texts.menu.links, columns, links.data, said.none)}${pager(texts, '/portal/links', query, links)}
<h2>${said.new_link}</h2>
${form(texts, {
  action: '/portal/links',
  button: texts.general.create,
  errors,
  typed: Object.keys(typed).length > 0 ? typed : { destination_url: [program.website_url] },
  fields: [
    { name: 'destination_url', label: said.destination, hint: said.destination_hint, required: true, kind: 'url' },
    { name: 'label', label: said.label, hint: said.label_hint },
    { name: 'value', label: said.value, hint: said.value_hint },
  ],
})}`;
  return { me, title: texts.menu.links, at: 'links', content };
}

function linkFacts({ texts, reader }: Me, link: LinkRow) {
  const { links: said, general } = texts;
  const rows: [string, unknown][] = [
    [said.url, copyable(link.url, texts)],
    ...(link.short_url === null ? [] : [[said.short_url, copyable(link.short_url, texts)] as [string, unknown]]),
    [said.destination, link.destination_url],
    [said.clicks, number(link.stats.clicks, reader)],
    [said.referrals, number(link.stats.referrals, reader)],
    [said.customers, number(link.stats.customers, reader)],
    [general.date, day(link.created_at, reader)],
    [
      said.qr,
      html`<img src="/portal/links/${link.id}/qr" alt="${said.qr}" width="160" height="160"><br>
<a href="/portal/links/${link.id}/qr?format=svg">SVG</a> <a href="/portal/links/${link.id}/qr?format=png">PNG</a>`,
    ],
  ];
  return html`<dl>${rows.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>
<p><a href="/portal/links">${general.back}</a></p>`;
}
