/** The file of a bank's report, which a person chooses on the page of a batch. */
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { Problem } from '../core/values/problem.ts';
import { html } from '../pages/html.ts';
import { notice } from '../pages/layout.ts';
import { perform, type Reply } from '../pages/run.ts';
import { filesOf, takeFiles } from '../pages/sent_files.ts';
import { confirm } from './account.ts';
import { codeField, isConfirmed } from './form_page.ts';
import { sendDashboard } from './frame.ts';
import { mayDo } from './roles.ts';
import { type DashboardVisit, readPage, type Visiting } from './visit.ts';

const take_in = 'payout_batches.take_in_report';

/** A form with the file and, where it is asked for, a code. */
export const reportForm = (visit: DashboardVisit, batch_id: string) =>
  mayDo(visit.role, 'payouts:write') &&
  html`<form class="stacked" method="post" action="/dashboard/bank_report/${batch_id}" enctype="multipart/form-data">
<div class="field"><label for="report-file">The bank’s report</label><p class="hint" id="report-hint">The XML file that your bank supplies (pain.002 or camt.054), at most 10 MiB. Payouts become paid or failed by it.</p><input id="report-file" name="document" type="file" accept=".xml,application/xml,text/xml" required aria-describedby="report-hint"></div>
${codeField(visit)}<div><button>Upload the report</button></div></form>`;

/** The file is read once it is known who sends it. */
export function mountBankReport(app: FastifyInstance, visiting: Visiting): void {
  void app.register(async (scope) => {
    takeFiles(scope);
    scope.post('/dashboard/bank_report/:id', { bodyLimit: 10 * 1024 * 1024 + 4_096 }, async (request, reply) => {
      const visit = visiting(request);
      const { id } = request.params as { id: string };
      const { document, code } = await partsOf(request);
      const path = `/dashboard/payout_batches/${id}`;
      try {
        if (!isConfirmed(visit.session.confirmed_at) && !(await confirm(visit, code)))
          throw new Problem('code_required', 'The code is missing, is not right, or was used. Wait for the next one.');
        if (document === '') throw new Problem('invalid_parameter', 'Choose the file that your bank supplied.');
        const report: Reply = await perform(visit, take_in, { params: { id }, body: { document } });
        return reply.redirect(`${path}?${new URLSearchParams({ done: take_in, report: report.id })}`, 303);
      } catch (error) {
        if (!(error instanceof Problem) || error.status === 404) throw error;
        const { chosen } = await readPage(visit, async () => ({}));
        const content = html`${notice(error.message, true)}${reportForm(visit, id)}<p><a href="${path}">Back to the batch</a></p>`;
        return sendDashboard(
          reply,
          visit,
          { title: 'Upload a bank report', content, at: 'payout_batches', chosen },
          error.status,
        );
      }
    });
  });
}

async function partsOf(request: FastifyRequest): Promise<{ document: string; code: string }> {
  const form = await filesOf(request);
  const [document, code] = [form.get('document'), form.get('code')];
  return {
    document: document instanceof File ? await document.text() : '',
    code: typeof code === 'string' ? code : '',
  };
}
