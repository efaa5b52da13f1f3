import pg from 'pg';
import sql from 'sql-template-tag';
import t from 'tap';
import { operations } from '../../../src/operations.ts';
import { type Caller, type Json, startRail } from '../../harness.ts';

const rail = await startRail({ worker: false, audit: false });
const merchant = await rail.organization();
const program = await merchant.post('/v1/programs', {
  ...{ name: 'Acme', website_url: 'https://acme.example.com', currency: 'USD' },
});

interface Exported {
  objects: Json[];
  position: string;
}

async function exported(resource: string, since?: string, caller: Caller = merchant): Promise<Exported> {
  const { data } = await caller.get(`/v1/exports/${resource}${since === undefined ? '' : `?since=${since}`}`);
  const end = data.pop();
  t.match(end, { object: 'export_position', resource, position: /^pos_/ });
  return { objects: data, position: end.position };
}

const tagNamed = (name: string): Promise<Json> => merchant.post('/v1/tags', { program_id: program.id, name });
const partner = (email: string): Promise<Json> => merchant.post('/v1/partners', { program_id: program.id, email });

t.test('gives every object, then what changed, each as its list has it', async (t) => {
  const ada = await partner('ada@example.com');
  const grace = await partner('grace@example.com');
  const { objects, position } = await exported('partners');
  t.same(objects.map(({ id }) => id).sort(), [ada.id, grace.id].sort());
  t.strictSame(
    objects.find(({ id }) => id === ada.id),
    await merchant.get(`/v1/partners/${ada.id}`),
  );
  t.same(await exported('partners', position), { objects: [], position }, 'nothing changed: the same position again');

  const alan = await partner('alan@example.com');
  const changed = await merchant.patch(`/v1/partners/${ada.id}`, { first_name: 'Ada' });
  const next = await exported('partners', position);
  t.strictSame(new Set(next.objects), new Set([await merchant.get(`/v1/partners/${alan.id}`), changed]));
  t.not(next.position, position);
  t.same((await exported('partners', position)).objects.length, 2, 'a position can be used again');

  await merchant.delete(`/v1/partners/${grace.id}`);
  const { objects: after } = await exported('partners', next.position);
  t.same(after, [{ id: grace.id, object: 'partner', deleted: true }]);
  t.notOk(
    (await exported('partners')).objects.some(({ id }) => id === grace.id),
    'an export that begins anew lacks it',
  );
});

t.test('needs a scope for personal data, besides data:read', async (t) => {
  const ask = async (resource: string, ...scopes: string[]) =>
    (await rail.key(merchant.organization_id, { scopes })).request('GET', `/v1/exports/${resource}`);
  t.match(await ask('customers', 'data:read'), {
    status: 403,
    body: { error: { code: 'insufficient_scope', param: 'data:personal' } },
  });
  t.match(await ask('customers', 'customers:read'), { status: 403, body: { error: { param: 'data:read' } } });
  t.equal((await ask('customers', 'data:read', 'customers:read')).status, 200);
  t.equal((await ask('customers', 'data:read', 'data:personal')).status, 200);
  t.equal((await ask('tags', 'data:read')).status, 200);
});

t.test('hides emails in URLs, labels and user agents from a key that may not read personal data', async (t) => {
  const { id: partner_id, handle } = await partner('urls@example.com');
  const landing_url =
    'https://acme.example.com/u/grace%40secret.example.com?email=grace@secret.example.com&utm_term=a@b.example.com';
  await merchant.post('/v1/clicks', {
    ...{ program_id: program.id, value: handle, landing_url, visitor_token: 'visitor-urls' },
    ...{ referrer: 'https://mail.example.com/?to=grace%2540secret.example.com', user_agent: 'to a@b.example.com' },
  });
  const destination_url = 'https://acme.example.com/u/a@b.example.com';
  await merchant.post('/v1/links', {
    ...{ program_id: program.id, partner_id, destination_url, label: 'of a@b.example.com' },
  });
  await rail.query(sql`
    insert into program.referral (organization_id, id, program_id, partner_id, landing_url, utm, tracked_by, status, visitor_token, expires_at, created_at, updated_at)
    select c.organization_id, 'ref_urls', c.program_id, c.partner_id, c.landing_url, '{"term": "a@b.example.com", "c@d.example.com": "1"}', 'link', 'visit', c.visitor_token, now(), now(), now()
    from program.click c where c.visitor_token = 'visitor-urls'`);
  const read = async (resource: string, ...scopes: string[]) =>
    (
      await exported(
        resource,
        undefined,
        await rail.key(merchant.organization_id, { scopes: ['data:read', ...scopes] }),
      )
    ).objects[0];
  const hidden = 'https://acme.example.com/u/hidden?email=hidden&utm_term=hidden';
  t.match(await read('clicks'), {
    ...{ landing_url: hidden, referer: 'https://mail.example.com/?to=hidden', user_agent: 'to hidden' },
  });
  const hidden_url = 'https://acme.example.com/u/hidden';
  t.match(await read('links'), { destination_url: hidden_url, url: `${hidden_url}?ref=`, label: 'of hidden' });
  t.match(await read('links', 'links:read'), { destination_url, label: 'of a@b.example.com' });
  t.match(await read('referrals', 'clicks:read'), { landing_url: hidden, utm: { term: 'hidden', hidden: '1' } });
  for (const scope of ['data:personal', 'clicks:read']) t.match(await read('clicks', scope), { landing_url });
  t.match(await read('referrals', 'referrals:read'), { landing_url, utm: { term: 'a@b.example.com' } });
});

t.test('hides notes, and emails in reasons, from a key that may not read personal data', async (t) => {
  const { id: partner_id } = await partner('noted@example.com');
  const of_partner = { program_id: program.id, partner_id };
  const note = 'agreed with grace@secret.example.com';
  const bonus = await merchant.post('/v1/commissions', { ...of_partner, amount_minor: 100, note });
  await merchant.post(`/v1/commissions/${bonus.id}/void`, { reason: note });
  const charge = { amount_minor: 100, currency: 'USD', external_charge_id: 'ch_noted' };
  const sale = await merchant.post('/v1/sales', { ...of_partner, ...charge });
  await merchant.post(`/v1/sales/${sale.id}/refund`, { reason: note });
  const read = async (resource: string, ...scopes: string[]) => {
    const key = await rail.key(merchant.organization_id, { scopes: ['data:read', ...scopes] });
    return (await exported(resource, undefined, key)).objects;
  };
  const reason = 'agreed with hidden';
  t.match(await read('commissions'), [{ note: null, void_reason: reason }]);
  t.match(await read('refunds'), [{ reason }]);
  for (const scope of ['data:personal', 'commissions:read'])
    t.match(await read('commissions', scope), [{ note, void_reason: note }]);
  t.match(await read('refunds', 'data:personal'), [{ reason: note }]);
});

t.test('gives a deleted marker for rows that are deleted outright, and their partners', async (t) => {
  const tag = await tagNamed('VIP');
  const tagged = await partner('vip@example.com');
  const { position: untagged } = await exported('partners');
  await merchant.patch(`/v1/partners/${tagged.id}`, { tag_ids: [tag.id] });
  t.match((await exported('partners', untagged)).objects, [{ id: tagged.id, tag_ids: [tag.id] }]);
  const [of_tags, of_partners] = [await exported('tags'), await exported('partners')];
  await merchant.delete(`/v1/tags/${tag.id}`);
  t.same((await exported('tags', of_tags.position)).objects, [{ id: tag.id, object: 'tag', deleted: true }]);
  const { objects } = await exported('partners', of_partners.position);
  t.match(objects, [{ id: tagged.id, tag_ids: [] }]);
});

t.test('gives what a transaction wrote that was still open at the position', async (t) => {
  const client = new pg.Client({ connectionString: rail.url });
  await client.connect();
  await client.query('begin');
  await client.query(`insert into program.tag (organization_id, id, program_id, name, color)
    values ('${merchant.organization_id}', 'tag_late', '${program.id}', 'Late', '#336699')`);
  const before = await exported('tags');
  t.notOk(before.objects.some(({ id }) => id === 'tag_late'));
  const early = await tagNamed('Early');
  const { objects, position } = await exported('tags', before.position);
  t.same(
    objects.map(({ id }) => id),
    [early.id],
  );
  await client.query('commit');
  await client.end();
  t.match((await exported('tags', position)).objects, [{ id: 'tag_late' }]);
});

t.test('gives a payout batch whose status follows from a payout that changed', async (t) => {
  const { organization_id } = merchant;
  const { id: partner_id } = await partner('paid@example.com');
  await rail.query(sql`
    insert into program.payout_batch
      (organization_id, id, program_id, stage, cutoff, due_at, approval_required, created_at, updated_at)
    values (${organization_id}, 'batch_1', ${program.id}, 'ready', now(), now(), false, now(), now())`);
  await rail.query(sql`alter table program.payout disable trigger payout_adds_up`);
  await rail.query(sql`
    insert into program.payout (organization_id, id, program_id, batch_id, partner_id, amount_minor, currency, status, method,
      period_start, period_end, due_at, commission_count, created_at, updated_at)
    values (${organization_id}, 'pyt_1', ${program.id}, 'batch_1', ${partner_id}, 5000, 'USD', 'pending', 'paypal',
      now(), now(), now(), 1, now(), now())`);
  const { objects, position } = await exported('payout_batches');
  t.match(objects, [{ id: 'batch_1', status: 'ready' }]);
  await rail.query(sql`update program.payout set status = 'paid', paid_at = now() where id = 'pyt_1'`);
  const { objects: changed } = await exported('payout_batches', position);
  t.strictSame(changed, [await merchant.get('/v1/payout_batches/batch_1')]);
  t.match(changed, [{ status: 'completed' }]);
});

t.test('refuses a position of another resource, of another organization, of a restored database', async (t) => {
  const refused = async (path: string, message: RegExp, caller = merchant) => {
    const answer = await caller.request('GET', path);
    t.match(answer, { status: 400, body: { error: { code: 'invalid_position', param: 'since', message } } });
  };
  await partner('again@example.com');
  const { position } = await exported('partners');
  await refused(`/v1/exports/tags?since=${position}`, /is of 'partners'\. Export 'tags' without 'since'/);
  await refused('/v1/exports/tags?since=pos_unknown', /is unknown/);
  await refused(`/v1/exports/partners?since=${position}`, /is unknown/, await rail.organization());
  await rail.query(sql`update core.export_position set epoch = 'another' where id = ${position}`);
  await refused(`/v1/exports/partners?since=${position}`, /from which this one was restored/);
});

t.test('gives nothing twice for what another database wrote', async (t) => {
  const { position } = await exported('tags');
  const restored = await tagNamed('Restored');
  await rail.query(sql`alter table program.tag disable trigger change_noted`);
  await rail.query(sql`update program.tag set changed_in = '9000000000000' where id = ${restored.id}`);
  await rail.query(sql`alter table program.tag enable trigger change_noted`);
  t.same((await exported('tags', position)).objects, []);
});

t.test('gives an organization its own rows alone', async (t) => {
  const stranger = await rail.organization();
  t.same((await exported('partners', undefined, stranger)).objects, []);
  const key = await rail.key(merchant.organization_id, { scopes: ['data:read', 'data:personal'] });
  t.ok((await exported('partners', undefined, key)).objects.length > 0);
  t.match(await merchant.request('GET', '/v1/exports/webhook_endpoints'), { status: 400 });
});

/** Events have a feed of their own in their list. The others are of the operator, or are answered at once. */
const without_feed = ['events', 'publishable_keys', 'api_keys', 'users', 'audit_log'];

t.test('exports every resource that the product lists, by an index', async (t) => {
  const listed = operations
    .filter(({ name, tag, path }) => name === `${tag}.list` && path === `/v1/${tag}`)
    .map(({ tag }) => tag)
    .filter((tag) => !without_feed.includes(tag) && !tag.startsWith('webhook_'));
  for (const resource of listed) {
    const { position } = await exported(resource);
    await exported(resource, position);
  }
  const lacking = await rail.query(sql`
    select a.attrelid::regclass::text as name
    from pg_attribute a
    where a.attname = 'changed_in' and (select c.relkind in ('r', 'p') and not c.relispartition from pg_class c where c.oid = a.attrelid)
      and not exists (
        select from pg_index i
        where i.indrelid = a.attrelid and i.indisvalid and i.indkey[1] = a.attnum
          and i.indkey[0] = (select o.attnum from pg_attribute o where o.attrelid = a.attrelid and o.attname = 'organization_id')
        or i.indrelid = a.attrelid and i.indisvalid and pg_get_indexdef(i.indexrelid) ~ 'brin .*changed_in'
      )`);
  t.same(lacking, []);
});
