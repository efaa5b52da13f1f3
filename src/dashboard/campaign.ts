/** A campaign: what it would send to how many, what keeps it from being launched, its texts, and how far it is. */
import { Problem } from '../core/values/problem.ts';
import { counted, number, time, words } from '../pages/format.ts';
import { type Html, html } from '../pages/html.ts';
import { notice } from '../pages/layout.ts';
import type { Use } from '../pages/run.ts';
import { facts, table } from '../pages/table.ts';
import { queryOf } from './list_page.ts';
import { postForm } from './post_form.ts';
import { actionList } from './record_page.ts';
import { mayDo } from './roles.ts';
import { type Record_, shown, withNamed } from './values.ts';
import type { DashboardVisit } from './visit.ts';

interface Finding {
  code: string;
  message: string;
  field: string | null;
  prospects: number | null;
  prospect_ids: string[];
}

interface Preflight {
  ok: boolean;
  blocking: Finding[];
  warnings: Finding[];
  prospects: number;
  reachable: number;
  emails: number;
  days: number | null;
}

interface Step {
  delay_days: number;
  subject: string | null;
  body_text: string;
  variants: { subject: string | null; body_text: string }[];
}

/** Campaigns of so many prospects are checked and counted with each visit; larger ones when a person asks for it. */
const most_checked = 1_000;
const by_hand = ['launch', 'pause', 'resume', 'stop', 'test', 'preflight', 'preview'];

export async function campaignContent(visit: DashboardVisit, stored: Record_, use: Use): Promise<Html> {
  const id = String(stored.id);
  const [campaign = stored] = await withNamed(use, [stored], 'brand', 'brands');
  const inbox_ids = stored.inbox_ids as string[];
  const inboxes = await withNamed(
    use,
    inbox_ids.map((inbox_id) => ({ inbox_id })),
    'inbox',
    'inboxes',
  );
  const { show } = queryOf(visit.request.query);
  const sequences = await use('sequences.list', { query: { campaign_id: id, limit: 1 } });
  const is_small = sequences.total_count <= most_checked;
  const is_to_launch = ['draft', 'scheduled'].includes(String(campaign.state));
  const preflight: Preflight | Problem | undefined =
    show === 'check' || (is_small && is_to_launch) ? await checked(use, id) : undefined;
  const results = show === 'results' || is_small ? await use('campaigns.stats', { params: { id } }) : undefined;
  return html`${stateFacts(visit, campaign, inboxes, sequences.total_count)}
${controls(visit, campaign)}
<h2>Before it is sent</h2>${preflight === undefined ? html`<p><a class="button plain" href="/dashboard/campaigns/${id}?show=check">Check every prospect</a></p>` : drawn(visit, preflight)}
<h2>Emails</h2>${(campaign.steps as Step[]).map((step, nth) => stepCard(step, nth))}
${(campaign.steps as Step[]).length === 0 && html`<p class="none">It has no emails yet.</p>`}
${testForm(visit, id, (campaign.steps as Step[]).length)}
<h2>Results</h2>${results === undefined ? html`<p><a class="button plain" href="/dashboard/campaigns/${id}?show=results">Count the results</a></p>` : resultTable(visit, results.steps)}
<p class="pages"><a href="/dashboard/sequences?campaign_id=${id}">Sequences</a> <a href="/dashboard/see/threads.list?${new URLSearchParams({ campaign_id: id, brand_id: String(campaign.brand_id) })}">Threads</a> <a href="/dashboard/campaign_additions?campaign_id=${id}">Additions</a></p>
<h2>Change</h2>${actionList(visit, 'campaigns', { id }, campaign, by_hand)}`;
}

/** Checks what the launch would. It changes nothing. */
const checked = (use: Use, id: string): Promise<Preflight | Problem> =>
  use('campaigns.preflight', { params: { id } }).catch((error) => {
    if (error instanceof Problem && error.status < 500) return error;
    throw error;
  });

function stateFacts(visit: DashboardVisit, campaign: Record_, inboxes: Record_[], prospects: number): Html {
  const { reader } = visit;
  const { timezone, days, from, to } = campaign.schedule as {
    timezone: string;
    days: number[];
    from: string;
    to: string;
  };
  const at = (name: string): [string, unknown][] =>
    campaign[name] === null ? [] : [[words(name), time(String(campaign[name]), reader)]];
  const causes = campaign.pause_causes as string[];
  return facts([
    ['State', shown(visit, 'state', campaign.state, campaign)],
    ...(causes.length > 0 ? [['Paused by', causes.map(words).join(', ')] as [string, unknown]] : []),
    ...(campaign.pause_reason ? [['Reason', words(String(campaign.pause_reason))] as [string, unknown]] : []),
    ...(campaign.launch_error ? [['It was not launched', campaign.launch_error] as [string, unknown]] : []),
    ['Prospects', counted(prospects, reader)],
    ['Brand', shown(visit, 'brand_id', campaign.brand_id, campaign)],
    ['Inboxes', inboxes.map((row, nth) => html`${nth > 0 && ', '}${shown(visit, 'inbox_id', row.inbox_id, row)}`)],
    ['Sends', `${from} to ${to}, ${days.map((day) => weekdays[day - 1]).join(', ')} (${timezone})`],
    ...['start_at', 'launched_at', 'paused_at', 'stopped_at', 'finished_at'].flatMap(at),
  ]);
}

const weekdays = ['Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun'];

/** The buttons that its state allows. */
function controls(visit: DashboardVisit, { id, state }: Record_): Html {
  const on = { params: { id: String(id) }, back: `/dashboard/campaigns/${id}` };
  const button = (name: string, title: string, kind: string) =>
    postForm(visit, `campaigns.${name}`, { ...on, content: html`<button class="${kind}">${title}</button>` });
  const launch = () =>
    postForm(visit, 'campaigns.launch', {
      ...on,
      content: html`<div class="field"><label for="start_at">Start at (UTC); now, where empty</label><input id="start_at" name="start_at" type="datetime-local" step="any"></div><button>Launch</button>`,
    });
  // A step that cannot be taken back is asked once more, on a page of its own.
  const stop =
    mayDo(visit.role, 'campaigns:write') &&
    html`<a class="button plain" href="/dashboard/do/campaigns.stop?id=${id}">Stop for good</a>`;
  const open: Record<string, unknown[]> = {
    draft: [launch()],
    scheduled: [launch(), stop],
    sending: [button('pause', 'Pause', 'plain'), stop],
    paused: [button('resume', 'Resume', ''), stop],
  };
  return html`<div class="actions">${open[String(state)] ?? []}</div>`;
}

function drawn(visit: DashboardVisit, preflight: Preflight | Problem): Html {
  if (preflight instanceof Problem) return notice(preflight.message, true);
  const { reader } = visit;
  const { ok, blocking, warnings, prospects, reachable, emails, days } = preflight;
  const one = (count: number, single: string, several: string): [string, string] => [
    number(count, reader),
    count === 1 ? single : several,
  ];
  const cards: [string, string][] = [
    one(prospects, 'prospect waits for the first email', 'prospects wait for the first email'),
    [number(reachable, reader), 'of them can be written to'],
    one(emails, 'email, if nobody replies', 'emails, if nobody replies'),
    days === null
      ? ['–', 'days for the first emails']
      : one(days, 'day for the first emails', 'days for the first emails'),
  ];
  return html`<ul class="cards">${cards.map(([figure, said]) => html`<li class="card"><strong>${figure}</strong>${said}</li>`)}</ul>
${ok ? notice('Nothing keeps it from being launched.') : blocking.map((one) => notice(finding(one), true))}
${warnings.length > 0 && html`<h3>What to know before</h3><ul>${warnings.map((one) => html`<li>${finding(one)}</li>`)}</ul>`}`;
}

const finding = ({ message, field, prospects, prospect_ids }: Finding): Html =>
  html`${message.replaceAll('`', '')}${field !== null && html` (${words(field.replace(/_ids?$/, ''))})`}${prospects !== null && html` (${prospects} ${prospects === 1 ? 'prospect' : 'prospects'}${prospect_ids.length > 0 && html`: ${prospect_ids.map((id, nth) => html`${nth > 0 && ', '}<a href="/dashboard/prospects/${id}">${nth + 1}</a>`)}`})`}`;

const stepCard = ({ delay_days, subject, body_text, variants }: Step, nth: number): Html =>
  html`<section class="card" aria-labelledby="step-${nth}"><h3 id="step-${nth}">${nth + 1}. ${nth === 0 ? 'First email' : `After ${delay_days} ${delay_days === 1 ? 'day' : 'days'} without a reply`}</h3>
${subject && html`<p><strong>${subject}</strong></p>`}<pre>${body_text}</pre>
${variants.map(
  (variant, other) =>
    html`<details><summary>Text ${other + 2}${variant.subject && html`: ${variant.subject}`}</summary><pre tabindex="0">${variant.body_text}</pre></details>`,
)}</section>`;

const testForm = (visit: DashboardVisit, id: string, steps: number): Html | false =>
  steps > 0 &&
  postForm(visit, 'campaigns.test', {
    params: { id },
    back: `/dashboard/campaigns/${id}`,
    content: html`<div class="field"><label for="step_index">Email</label><select id="step_index" name="step_index">${Array.from({ length: steps }, (_, nth) => html`<option value="${nth}">${nth + 1}</option>`)}</select></div>
<div class="field"><label for="email">Address of a team member</label><input id="email" name="email" type="email" required maxlength="254" autocomplete="email"></div><button class="plain">Send a test</button>`,
  });

interface StepResults {
  step_index: number;
  sent: number;
  delivered: number;
  bounced: number;
  failed: number;
  replies: Record<string, number>;
  unsubscribed: number;
}

const resultTable = ({ reader }: DashboardVisit, steps: StepResults[]): Html => {
  const figure = (title: string, of: (row: StepResults) => number) => ({
    title,
    is_number: true,
    cell: (row: StepResults) => number(of(row), reader),
  });
  return table(
    'Results by email',
    [
      { title: 'Email', cell: ({ step_index }) => step_index + 1 },
      figure('Sent', ({ sent }) => sent),
      figure('Delivered', ({ delivered }) => delivered),
      figure('Bounced', ({ bounced }) => bounced),
      figure('Failed', ({ failed }) => failed),
      figure('Replies', ({ replies }) => Object.values(replies).reduce((sum, count) => sum + count, 0)),
      figure('Positive', ({ replies }) => replies.positive ?? 0),
      figure('Unsubscribed', ({ unsubscribed }) => unsubscribed),
    ],
    steps,
    'Nothing was sent yet.',
  );
};
