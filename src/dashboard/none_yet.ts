/** What a page says before there is what it is about. */
import { type Html, html } from '../pages/html.ts';
import { mayDo } from './roles.ts';
import type { DashboardVisit } from './visit.ts';

/** Shown on a page of a program before there is one. */
export const noProgram = ({ role }: Pick<DashboardVisit, 'role'>): Html =>
  html`<p class="none">There is no program yet. ${mayDo(role, 'programs:write') && html`<a href="/dashboard/do/programs.create">Create the first program</a>.`}</p>`;

/** Shown on a page of recruitment before there is a brand. */
export const noBrand = ({ role }: Pick<DashboardVisit, 'role'>): Html =>
  html`<p class="none">There is no brand yet. ${mayDo(role, 'brands:write') && html`<a href="/dashboard/do/brands.create">Create a brand</a> to recruit partners for it.`}</p>`;
