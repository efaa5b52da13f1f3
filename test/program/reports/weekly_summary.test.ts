import t from 'tap';
import { awayFromMidnight, eventually, type Json, sql, startRail } from '../../harness.ts';
import { openShop } from '../../shop.ts';

const rail = await startRail();

const mailsOf = (organization_id: string): Promise<Json[]> =>
  rail.query(
    sql`select id, recipient, subject, text, html from core.outgoing_mail where organization_id = ${organization_id}`,
  );

/** The Monday after a day, at the time of the schedule. */
function mondayAfter(day: Date): Date {
  const monday = new Date(Date.UTC(day.getUTCFullYear(), day.getUTCMonth(), day.getUTCDate(), 6));
  monday.setUTCDate(monday.getUTCDate() + ((8 - monday.getUTCDay()) % 7 || 7));
  return monday;
}

t.test('mails the last week to the owner, once, where the program wants it', async (t) => {
  await awayFromMidnight();
  const shop = await openShop(rail, { name: 'Acme <b>& Sons</b>', weekly_summary: true });
  const silent = await openShop(rail, {}, shop.merchant);
  t.equal(silent.program.weekly_summary, false, 'off by default');
  const ada = await shop.partner();
  await shop.sale({ partner_id: ada.id, amount_minor: 123_450 });
  await silent.sale({ partner_id: (await silent.partner()).id });
  await shop.sale({ partner_id: ada.id, amount_minor: 5_000, currency: 'EUR' });
  const tick = mondayAfter(new Date()).toISOString();
  for (let nth = 0; nth < 2; nth++) {
    const at = new Date(Date.parse(tick) + nth * 60_000).toISOString();
    await rail.tick('program/send_weekly_summaries', at);
    await eventually(async () => {
      const [{ waiting } = { waiting: 1 }] = await rail.query<{ waiting: number }>(
        sql`select count(*)::int as waiting from graphile_worker.jobs where task_identifier = 'program/send_weekly_summaries'`,
      );
      return waiting === 0;
    }, 'the job to end');
  }
  const mails = await mailsOf(shop.merchant.organization_id);
  t.equal(mails.length, 1, 'one for each program and week');
  const [{ recipient, subject, text, html } = {} as Json] = mails;
  t.equal(recipient, 'owner@example.com');
  t.match(subject, /^Acme <b>& Sons<\/b>: 2 sales in week \d{4}-W\d{2}$/);
  t.match(text, /, week \d{4}-W\d{2}: [A-Z][a-z]+ \d+.*, UTC\n/);
  t.match(text, /^Revenue +USD 1,234\.50 +—$/m);
  t.match(text, /^(Mon|Tue|Wed|Thu|Fri|Sat|Sun) +USD 1,234\.50 +█{20}$/m);
  t.match(text, new RegExp(`^${ada.handle} +USD 1,234\\.50 +█{20}$`, 'm'));
  t.match(text, 'Amounts in EUR are not included.');
  t.match(html, 'Acme &lt;b&gt;&amp; Sons&lt;/b&gt;');
  t.match(html, 'width:240px');
  for (const body of [text, html])
    t.match(body, `set weekly_summary of the program to false (PATCH /v1/programs/${shop.program_id}).`);
  t.match(await rail.query(sql`select program_id from program.weekly_summary`), [{ program_id: shop.program_id }]);
});
