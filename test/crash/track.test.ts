import t from 'tap';
import { request } from 'undici';
import { type Json, sql, startRail } from '../harness.ts';
import { startProcess } from '../processes.ts';
import { openShop } from '../shop.ts';

const kills = 4;
const browsers = 20;
/** The clicks of a round that are answered before its kill. */
const answered_before_kill = 60;

const rail = await startRail({ worker: false, durability: 'durable' });
const shop = await openShop(rail);
const partner = await shop.partner();
const origin = 'https://acme.example.com';
const { key } = await shop.merchant.post('/v1/publishable_keys', {
  program_id: shop.program_id,
  allowed_origins: [origin],
});
const headers = { origin, 'content-type': 'text/plain', 'user-agent': 'Mozilla/5.0 (X11; Linux x86_64) Firefox/145.0' };

t.test('clicks of pages that were answered are there, wherever the API was killed amid them', async (t) => {
  const answered: string[] = [];
  for (let round = 0; round < kills; round++) {
    const api = await startProcess('api', rail.url);
    const enough = Promise.withResolvers<void>();
    const most = answered.length + answered_before_kill;
    const browse = async () => {
      for (;;) {
        const body = JSON.stringify({ key, param: 'ref', value: partner.handle, url: `${origin}/?ref=x` });
        const answer = await request(`${api.url}/v1/track/click`, { method: 'POST', headers, body });
        const { click_id } = (await answer.body.json()) as Json;
        if (answer.statusCode === 200) answered.push(click_id);
        if (answered.length >= most) enough.resolve();
      }
    };
    const all = Array.from({ length: browsers }, () => browse().catch(() => {}));
    await enough.promise;
    await api.end('SIGKILL');
    await Promise.all(all);
  }
  const rows = await rail.query<{ id: string }>(
    sql`select id from program.click where program_id = ${shop.program_id}`,
  );
  const stored = new Set(rows.map(({ id }) => id));
  t.ok(answered.length >= kills * answered_before_kill);
  t.same(
    answered.filter((id) => !stored.has(id)),
    [],
    `${answered.length} were answered, and ${stored.size} are stored`,
  );
  t.equal(new Set(answered).size, answered.length, 'each is a click of its own');
});
