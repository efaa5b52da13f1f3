/** The frame of the portal: the bar above, the menu, and what the partner has still to do. */
import type { FastifyReply } from 'fastify';
import { cursorsBeside } from '../pages/cursors.ts';
import { type Html, html } from '../pages/html.ts';
import { notice, sendHtml } from '../pages/layout.ts';
import type { PortalTexts } from './texts/texts.ts';
import type { Me } from './visit.ts';

type Place = keyof PortalTexts['menu'];

export interface PortalPage {
  title: string;
  content: Html;
  /** The entry of the menu that is marked; `terms` is in none. */
  at?: Place | 'terms';
}

const path = (place: Place): string => (place === 'home' ? '/portal' : `/portal/${place}`);

export function sendPortal(
  reply: FastifyReply,
  me: Me,
  { title, content, at }: PortalPage,
  status = 200,
): FastifyReply {
  const { texts, program, must_accept, reader } = me;
  // The list of what is still to be done has it too.
  const asks =
    must_accept && at !== 'home' && at !== 'terms'
      ? html`<p class="notice bad" role="status"><a href="/portal/terms">${texts.general.step_terms}</a></p>`
      : html``;
  return sendHtml(reply, status, {
    language: reader.language,
    title,
    of: program.name,
    skip: texts.general.skip,
    top: top(me),
    menu: menu(me, at),
    content: html`${asks}${content}`,
  });
}

const top = ({ texts, program, partner }: Me): Html => html`<header class="top">
<a class="brand" href="/portal">${program.name}</a><a class="to-menu" href="#menu">${texts.general.menu}</a>
<span>${partner.email}</span>
<form method="post" action="/portal/sign_out"><button class="plain">${texts.general.sign_out}</button></form>
</header>`;

/** Who waits for a decision has nothing to look at but that. */
function menu({ texts, partner, program }: Me, at: PortalPage['at']): Html {
  const all = Object.entries(texts.menu) as [Place, string][];
  const shown = all.filter(
    ([place]) =>
      place === 'home' ||
      place === 'notifications' ||
      (partner.status === 'active' && isNeeded(place, program.require_tax_forms)),
  );
  return html`<nav class="side" id="menu" aria-label="${texts.general.portal}"><div class="rooms"><ul>${shown.map(
    ([place, name]) => html`<li><a href="${path(place)}"${place === at && html` aria-current="page"`}>${name}</a></li>`,
  )}</ul></div></nav>`;
}

const isNeeded = (place: Place, needs_tax_form: boolean): boolean => place !== 'tax_form' || needs_tax_form;

/** A value with a button that copies it, where scripts run. */
export const copyable = (value: string, { general }: PortalTexts): Html =>
  html`<code>${value}</code> <button class="plain" type="button" hidden data-copy="${value}" data-copied="${general.copied}">${general.copy}</button>`;

/** Says what was done, by the address: `?done=saved`. */
export const doneNotice = (query: unknown, said: Readonly<Record<string, string>>): Html => {
  const { done } = query as { done?: unknown };
  return typeof done === 'string' && Object.hasOwn(said, done) ? notice(said[done]) : html``;
};

/** Links to the pages of a list before and after. */
export function pager(
  { general }: PortalTexts,
  address: string,
  query: unknown,
  page: { data: { id: string }[]; has_more: boolean },
): Html {
  const { previous, next } = cursorsBeside(page, query as Record<string, unknown>);
  return html`<p class="pages">${previous && html`<a href="${address}?${new URLSearchParams(previous)}">${general.previous_page}</a>`}
${next && html`<a href="${address}?${new URLSearchParams(next)}">${general.next_page}</a>`}</p>`;
}

/** The cursor of a list, from the address of its page. */
export function cursorOf(query: unknown): Record<string, string> {
  const { starting_after, ending_before } = query as Record<string, unknown>;
  if (typeof starting_after === 'string') return { starting_after };
  return typeof ending_before === 'string' ? { ending_before } : {};
}
