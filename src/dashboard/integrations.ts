/** Integrations: what connects the program to a site and to billing, and what is still missing. */
import { counted, words } from '../pages/format.ts';
import { type Html, html } from '../pages/html.ts';
import { table } from '../pages/table.ts';
import { noProgram } from './none_yet.ts';
import { mayDo } from './roles.ts';
import { type Record_, shown } from './values.ts';
import { type DashboardVisit, readPage } from './visit.ts';

export async function integrationsPage(visit: DashboardVisit) {
  const { processors, keys, endpoints, clicks, chosen } = await readPage(visit, async (use, { program_id }) => {
    if (program_id === undefined) return { processors: [], keys: [], endpoints: 0, clicks: 0 };
    const [known, of_keys, of_endpoints, of_clicks] = [
      await use('processors.list', { params: { id: program_id } }),
      await use('publishable_keys.list', { query: { program_id, limit: 20 } }),
      await use('webhook_endpoints.list', { query: { program_id, limit: 1 } }),
      await use('clicks.list', { query: { program_id, limit: 1 } }),
    ];
    return {
      processors: known.data as Record_[],
      keys: of_keys.data as Record_[],
      endpoints: of_endpoints.total_count as number,
      clicks: of_clicks.total_count as number,
    };
  });
  if (chosen.program_id === undefined) return { title: 'Integrations', chosen, content: noProgram(visit) };
  const { program_id } = chosen;
  const content = html`<h2>Billing processors</h2>${processorTable(visit, program_id, processors)}
<h2>The script for your pages</h2>${keyTable(visit, keys)}<p>${clicks > 0 ? html`Clicks arrive: <a href="/dashboard/clicks">the newest</a>.` : 'No click has arrived yet.'} <a href="/docs/snippet">/docs/snippet</a> says how to paste the script, and how to serve it from your own host.</p>
<h2>Webhooks</h2><p>${endpoints > 0 ? html`<a href="/dashboard/webhook_endpoints">${counted(endpoints, visit.reader)} endpoints</a>.` : html`No endpoint yet. <a href="/dashboard/do/webhook_endpoints.create">Create one</a>; <a href="/docs/webhooks">/docs/webhooks</a> shows how to receive them.`}</p>
<h2>API keys</h2><p><a href="/dashboard/api_keys">Keys</a> open the REST API. Keep them on your servers.</p>`;
  return { title: 'Integrations', content, chosen };
}

/** Publishable keys, and how the page that used each last reached the service. */
const keyTable = (visit: DashboardVisit, keys: Record_[]): Html =>
  html`${table(
    'Publishable keys',
    [
      { title: 'Key', cell: ({ id, key }) => html`<a href="/dashboard/publishable_keys/${id}">${key}</a>` },
      { title: 'Origins', cell: (row) => shown(visit, 'allowed_origins', row.allowed_origins, row, true) },
      { title: 'Set-up', cell: (row) => shown(visit, 'setup', row.setup, row) },
      { title: 'Last used', cell: (row) => shown(visit, 'last_used_at', row.last_used_at, row) },
    ],
    keys,
    'There is no publishable key yet.',
  )}${mayDo(visit.role, 'publishable_keys:write') && html`<ul class="actions"><li><a class="button plain" href="/dashboard/do/publishable_keys.create">Create a publishable key</a></li></ul>`}`;

const processorTable = (visit: DashboardVisit, program_id: string, processors: Record_[]): Html =>
  html`${table(
    'Billing processors',
    [
      { title: 'Processor', cell: ({ processor }) => processor },
      { title: 'Status', cell: (row) => shown(visit, 'status', row.status, row) },
      { title: 'Account', cell: ({ account }) => account },
      { title: 'Mode', cell: ({ mode }) => mode },
      {
        title: 'Change',
        cell: ({ processor }) =>
          html`<a href="/dashboard/do/processors.put?${new URLSearchParams({ id: program_id, processor: String(processor) })}">Change</a> <a href="/dashboard/do/processors.test?${new URLSearchParams({ id: program_id, processor: String(processor) })}">Test</a>`,
      },
    ],
    processors,
    'None is connected: payments arrive by the API alone.',
  )}${mayDo(visit.role, 'programs:write') && html`<ul class="actions">${['stripe', 'paddle', 'chargebee'].map((name) => html`<li><a class="button plain" href="/dashboard/do/processors.put?${new URLSearchParams({ id: program_id, processor: name })}">Connect ${words(name)}</a></li>`)}</ul>`}`;
