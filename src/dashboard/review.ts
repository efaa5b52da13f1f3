/** The review queue: applications that wait, the oldest first, each with its answers and the two decisions. */
import { counted, time, words } from '../pages/format.ts';
import { type Html, html } from '../pages/html.ts';
import { facts } from '../pages/table.ts';
import { postForm } from './post_form.ts';
import { type Record_, shown } from './values.ts';
import { type DashboardVisit, readPage } from './visit.ts';

const most = 20;
/** What applicants say of themselves beside their answers. */
const told = ['first_name', 'last_name', 'company_name', 'website_url', 'country_code', 'language_code'];

interface Question {
  key: string;
  label: string;
}

export async function reviewPage(visit: DashboardVisit) {
  const { waiting, partners, questions, subdomain, chosen } = await readPage(visit, async (use, { program_id }) => {
    if (program_id === undefined)
      return { waiting: undefined, partners: new Map<string, Record_>(), questions: [], subdomain: undefined };
    const waiting: { data: Record_[]; total_count: number } = await use('applications.list', {
      query: { program_id, status: 'pending', limit: most },
    });
    const partners = new Map<string, Record_>();
    for (const { email } of waiting.data) {
      const { data } = await use('partners.list', { query: { program_id, email, limit: 1 } });
      if (data[0]) partners.set(String(email), data[0]);
    }
    const program = await use('programs.get', { params: { id: program_id } });
    return {
      ...{ waiting, partners, questions: (program.questions ?? []) as Question[] },
      subdomain: program.subdomain as string,
    };
  });
  const content =
    !waiting || waiting.data.length === 0
      ? html`<p class="none">No application waits for a decision.${subdomain !== undefined && html` Partners apply at <a href="/join/${subdomain}">${visit.services.base_url}/join/${subdomain}</a>.`}</p>`
      : html`<p>${counted(waiting.total_count, visit.reader)} in all${waiting.total_count > most && `; the newest ${most} are shown`}.</p>
${waiting.data.map((application) => card(visit, application, questions, partners.get(String(application.email))))}`;
  return {
    title: 'Applications to review',
    content: html`${content}<p><a href="/dashboard/applications">All applications</a></p>`,
    chosen,
  };
}

function card(visit: DashboardVisit, application: Record_, questions: Question[], partner: Record_ | undefined): Html {
  const { reader } = visit;
  const answers = Object.entries((application.answers ?? {}) as Record<string, unknown>);
  const label = (key: string) => questions.find((question) => question.key === key)?.label ?? words(key);
  const id = String(application.id);
  return html`<section class="card" aria-labelledby="${id}"><h2 id="${id}"><a href="/dashboard/applications/${id}">${application.email}</a></h2>
${facts([
  ['Applied', time(String(application.created_at), reader)],
  ...(application.source
    ? [['Source', shown(visit, 'source', application.source, application)] as [string, unknown]]
    : []),
  ...(partner
    ? [
        [
          'Partner',
          html`<a href="/dashboard/partners/${partner.id}">${partner.handle ?? partner.email}</a> ${shown(visit, 'status', partner.status, partner)}`,
        ] as [string, unknown],
        ...told
          .filter((name) => partner[name])
          .map((name): [string, unknown] => [words(name), shown(visit, name, partner[name], partner)]),
      ]
    : []),
  ...answers.map(([key, value]): [string, unknown] => [label(key), shown(visit, key, value, application)]),
])}
${decisions(visit, id)}</section>`;
}

const decisions = (visit: DashboardVisit, id: string): Html => {
  const on = { params: { id }, back: '/dashboard/review' };
  const reason = html`<div class="field"><label for="reason-${id}">Reason, which the applicant reads word for word <span class="hint">(optional: else the program’s standard reason)</span></label><input id="reason-${id}" name="reason" maxlength="1000"></div>`;
  return html`${postForm(visit, 'applications.approve', { ...on, content: html`<button>Approve</button>` })}
${postForm(visit, 'applications.reject', { ...on, content: html`${reason}<button class="danger">Reject</button>` })}`;
};
