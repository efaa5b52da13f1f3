import t from 'tap';
import { channels } from '../../src/recruitment/events/fields.ts';
import { type Caller, eventually, type Json, linesOf, sql, startRail } from '../harness.ts';

const rail = await startRail();
const v1 = '/recruitment/v1';

async function openBrand() {
  const caller = await rail.organization();
  const { id } = await caller.post(`${v1}/brands`, { name: 'Acme', website_url: 'https://acme.example.com' });
  return { caller, brand_id: id as string };
}
type Opened = Awaited<ReturnType<typeof openBrand>>;

async function ended(caller: Caller, { id }: Json): Promise<Json> {
  const read = () => caller.get(`${v1}/imports/${id}`);
  await eventually(async () => (await read()).finished_at !== null, 'an import to end');
  return read();
}
const imported = async ({ caller, brand_id }: Opened, document: string, given: Json = {}): Promise<Json> =>
  ended(caller, await caller.post(`${v1}/prospects/import`, { brand_id, document, ...given }));
const counts = ({ state, total, created, updated, unchanged, refused }: Json) => ({
  ...{ state, total, created, updated, unchanged, refused },
});
const done = (given: Json) => ({
  ...{ state: 'done', total: 0, created: 0, updated: 0, unchanged: 0, refused: 0, ...given },
});
const listed = async ({ caller, brand_id }: Opened, query = ''): Promise<Json[]> =>
  (await caller.get(`${v1}/prospects?brand_id=${brand_id}&limit=100${query}`)).data;
const toldOf = (caller: Caller): Promise<Json[]> =>
  rail
    .query<{ type: string; body: string }>(
      sql`select e.type, e.body from webhooks.event e where e.organization_id = ${caller.organization_id} order by e.position`,
    )
    .then((rows) => rows.map(({ type, body }) => ({ type, ...JSON.parse(body).data })));
const refusal = async ({ caller, brand_id }: Opened, document: string, given: Json = {}) => {
  const { status, body } = await caller.request('POST', `${v1}/prospects/import`, { brand_id, document, ...given });
  return [status, body.error?.param, body.error?.message];
};

t.test('imports CSV with a byte order mark, semicolons, quotes and CRLF', async (t) => {
  const opened = await openBrand();
  const document =
    '\ufeffWebsite;Name;E-Mail;Country;Followers;custom.tier;Language\r\n' +
    'https://www.baking-blog.com/about;"Baking; the ""Blog""";Ada@baking-blog.com;de;1200;gold;DE\r\n\r\n' +
    'youtube.com/@Bread;"Two\r\nlines";;;;;\r\n';
  const done_import = await imported(opened, document);
  t.same(counts(done_import), done({ total: 2, created: 2 }));
  t.same(done_import.mapping['E-Mail'], 'email');
  const [second, first] = await listed(opened);
  t.match(first, {
    ...{ channel: 'website', key: 'baking-blog.com', name: 'Baking; the "Blog"', country_code: 'DE', followers: 1200 },
    ...{ language_code: 'de', custom: { tier: 'gold' }, source: 'csv_import', email_status: 'found' },
    url: 'https://www.baking-blog.com/about',
  });
  t.match(second, { channel: 'youtube', key: 'bread', name: 'Two\r\nlines', email_status: 'none' });
  const emails = (await opened.caller.get(`${v1}/prospects/${first?.id}/emails`)).data;
  t.match(emails, [{ email: 'Ada@baking-blog.com', source: 'manual' }]);
  t.same(
    (await toldOf(opened.caller)).filter(({ type }) => /^(affiliate|email)/.test(type)),
    [
      { type: 'affiliate.added', prospect_id: first?.id, channel: 'website', source: 'csv_import' },
      { type: 'affiliate.added', prospect_id: second?.id, channel: 'youtube', source: 'csv_import' },
      {
        ...{ type: 'email.revealed', prospect_id: first?.id, source: 'manual' },
        ...{ verification: 'unknown', addresses: 1 },
      },
    ],
  );
  t.same(
    await rail.query(
      sql`select from recruitment.import_chunk where organization_id = ${opened.caller.organization_id}`,
    ),
    [],
  );
});

t.test('takes files as they are, with the fields in the query, and NDJSON with objects in it', async (t) => {
  const opened = await openBrand();
  const { caller, brand_id } = opened;
  const send = async (type: string, query: string, file: string) =>
    ended(
      caller,
      await caller.post(`${v1}/prospects/import?brand_id=${brand_id}${query}`, file, { 'Content-Type': type }),
    );
  const csv = await send('text/csv', '&mapping=Blog%3Durl,Note%3D', 'Blog\tNote\ntabs.com\tx\n');
  t.same(counts(csv), done({ total: 1, created: 1 }));
  t.match(csv, { format: 'csv', mapping: { Blog: 'url', Note: null } });
  const ndjson = await send(
    'application/x-ndjson',
    '',
    '{"channel": "x", "handle": "@Ada", "custom": {"tier": {"level": 1}}}\n\n{"url": "https://other.com/", "followers": 7}\n',
  );
  t.same(counts(ndjson), done({ total: 2, created: 2 }));
  t.match(
    (await listed(opened)).toReversed().map(({ channel, key, custom, followers }) => [channel, key, custom, followers]),
    [
      ['website', 'tabs.com', {}, null],
      ['x', 'ada', { tier: { level: 1 } }, null],
      ['website', 'other.com', {}, 7],
    ],
  );
  t.equal((await caller.get(`${v1}/imports?brand_id=${brand_id}`)).total_count, 2);
});

t.test('takes the delimiter that the first line declares', async (t) => {
  const opened = await openBrand();
  const files = [
    'sep=;\r\nurl;name\r\none.com;"A, B"\r\n',
    '\ufeffSEP=|\nurl|name\ntwo.com|A,B,C\n',
    '"sep=,"\nurl,name\nthree.com,A\n',
    'sep=\t\nurl\tname\nfour.com\tA\n',
  ];
  for (const file of files) t.same(counts(await imported(opened, file)), done({ total: 1, created: 1 }), file);
  t.match((await listed(opened)).map(({ name }) => name).sort(), ['A', 'A', 'A, B', 'A,B,C']);
  const faulty = await imported(opened, 'sep=;\nurl;name\n;B\n');
  t.match(faulty, { total: 1, refused: 1, errors: [{ line: 3, field: 'url' }] });
});

t.test('refuses a row whose time zone is an abbreviation', async (t) => {
  const result = await imported(
    await openBrand(),
    'url,timezone\nhttps://one.com,CET\nhttps://two.com,europe/berlin\n',
  );
  t.match(result, { created: 1, refused: 1, errors: [{ line: 2, field: 'timezone', reason: /IANA time zone/ }] });
});

t.test('refuses rows one by one, with line, field and reason, and none of their values', async (t) => {
  const opened = await openBrand();
  const document = [
    'url,key,channel,email,country,followers',
    'https://good.com,,,,,',
    ',,,ada@lost.com,,',
    'https://two.com,,,not an address,,',
    'https://three.com,,,,Germany,',
    'https://four.com,,,,,many',
    ',ada@example.com,website,,,',
    'https://five.com,,fax,,,',
    'https://six.com,,,,,,surplus',
    'https://good.com,,,,,',
    'https://seven.com,,,,,-5',
  ].join('\n');
  const result = await imported(opened, document);
  t.same(counts(result), done({ total: 10, created: 1, unchanged: 1, refused: 8 }));
  t.same(
    result.errors.map(({ line, field, reason }: Json) => [line, field, reason]),
    [
      [3, 'url', "is required, unless 'key' is given"],
      [4, 'email', 'must be an email address, such as ada@example.com'],
      [5, 'country_code', 'must be 2 letters, such as DE'],
      [6, 'followers', 'must be a whole number, such as 12000, 12,000 or 1.2M'],
      [
        7,
        'key',
        'does not identify a prospect in the channel website: send the URL of their own site, or of their account',
      ],
      [8, 'channel', `must be one of: ${channels.join(', ')}`],
      [9, null, 'has 7 values, and the header names 6 columns'],
      [11, 'followers', 'must be at least 0'],
    ],
  );
  t.notMatch(JSON.stringify(result.errors), /ada@lost|not an address|Germany|surplus/);
  const { caller } = opened;
  const all = await caller.get(`${v1}/imports/${result.id}/errors?limit=2`);
  t.match(all, { total_count: 8, has_more: true, data: [{ line: 3 }, { line: 4 }] });
  const next = await caller.get(`${v1}/imports/${result.id}/errors?limit=2&starting_after=${all.data[1].id}`);
  t.match(next.data, [{ line: 5 }, { line: 6 }]);
  const csv = await caller.request('GET', `${v1}/imports/${result.id}/errors?format=csv`);
  t.equal(csv.text.trim().split('\n').length, 9);
  t.equal(linesOf((await caller.request('GET', `${v1}/imports/${result.id}/errors?format=ndjson`)).text).length, 8);
  const ndjson = await imported(
    opened,
    '{"url": "https://nd.com"}\n[1]\n{"url"\n{"url": "x\\u0000.com"}\n{"web_page": 1}\n',
  );
  t.same(counts(ndjson), done({ total: 5, created: 1, refused: 4 }));
});

t.test('refuses a file that cannot be imported, and says why', async (t) => {
  const opened = await openBrand();
  t.match(await imported(opened, 'key,url\nblog.com,https://other.com/\nrye.com,https://www.rye.com/about\n'), {
    ...{ created: 1, refused: 1, errors: [{ field: 'url', reason: "is of another prospect than 'key'" }] },
  });
  t.match(await refusal(opened, 'url,Mood\na.com,x\n'), [400, 'mapping', /'Mood' is not known.*custom\.<name>/]);
  t.match(await refusal(opened, 'url,Mood\na.com,x\n', { mapping: { Mood: 'mood' } }), [400, 'mapping', /'mood'/]);
  t.match(await refusal(opened, 'url\na.com\n', { mapping: { Mood: null } }), [400, 'mapping', /no column 'Mood'/]);
  t.match(await refusal(opened, 'url,website\na.com,b.com\n'), [400, 'mapping', /both imported as 'url'/]);
  t.match(await refusal(opened, 'name\nAda\n'), [400, 'mapping', /'url' or 'key'/]);
  t.match(await refusal(opened, 'url\n'), [400, 'document', /no rows/]);
  t.match(await refusal(opened, `url\n${'a.com\n'.repeat(100_001)}`), [400, 'document', /100001 rows/]);
  t.match(await refusal(opened, '{"name": \n'), [400, 'document', /JSON object/]);
  const { caller, brand_id } = opened;
  t.match(await caller.request('POST', `${v1}/prospects/import`, { document: 'url\na.com' }), { status: 400 });
  const latin = Buffer.from('url,name\na.com,Jos\u00e9\n', 'latin1') as unknown as string;
  const type = { 'Content-Type': 'text/csv' };
  t.match(await rawPost(caller, `${v1}/prospects/import?brand_id=${brand_id}`, latin, type), { status: 400 });
  t.match(await rawPost(caller, `${v1}/prospects/import`, 'url', { 'Content-Type': 'text/plain' }), {
    ...{ status: 415, body: { error: { message: /, or the file as text\/csv or application\/x-ndjson\.$/ } } },
  });
  const open_quote = await imported(opened, 'url,name\nfirst.com,A\nb.com,"B\n');
  t.match(open_quote, { state: 'failed', created: 1, error: 'The last quotation mark is not closed.' });
  t.match(await imported(opened, `url,name\nb.com,"${'x'.repeat(70_000)}`), { state: 'failed', error: /longer than/ });
});

t.test('keeps people apart who share a site, and merges nobody by a site that it does not know', async (t) => {
  const opened = await openBrand();
  const rows = [
    ...['https://linktr.ee/ann,Ann,ann@one.example.net', 'https://linktr.ee/bob,Bob,bob@two.example.net'],
    ...['https://www.amazon.com/shop/cid,Cid,', 'https://www.amazon.com/shop/dora,Dora,'],
    ...['https://www.facebook.com/profile.php?id=11,Eve,', 'https://www.facebook.com/profile.php?id=12,Fay,'],
    ...['https://crowd.example/@nia,Nia,', 'https://crowd.example/@oli,Oli,'],
    ...['https://new-links.io/gil,Gil,gil@three.com', 'https://new-links.io/hal,Hal,hal@four.com'],
    // Two articles of one site, and two people who work there.
    ...['https://one-site.com/a,Ida,ida@one-site.com', 'https://one-site.com/b,Jon,jon@one-site.com'],
    ...['https://linktr.ee/,Kim,', 'https://www.instagram.com/lea,Lea,'],
  ];
  const shared = await imported(opened, `url,name,email\n${rows.join('\n')}\n`, { update_existing: true });
  t.same(counts(shared), done({ total: 14, created: 11, updated: 1, refused: 2 }));
  t.same((await listed(opened)).map(({ key, name }) => [key, name]).sort(), [
    ['11.id.facebook.com', 'Eve'],
    ['12.id.facebook.com', 'Fay'],
    ['ann.linktr.ee', 'Ann'],
    ['bob.linktr.ee', 'Bob'],
    ['cid.amazon.com', 'Cid'],
    ['dora.amazon.com', 'Dora'],
    ['lea', 'Lea'],
    ['new-links.io', 'Gil'],
    ['nia._at.crowd.example', 'Nia'],
    ['oli._at.crowd.example', 'Oli'],
    ['one-site.com', 'Jon'],
  ]);
  const { data } = await opened.caller.get(`${v1}/imports/${shared.id}/errors`);
  t.match(data, [
    { line: 11, field: 'url', reason: /^belongs to the site of line 10, / },
    { line: 14, field: 'url', reason: /^does not identify a prospect/ },
  ]);
});

t.test(
  'keeps people apart who share a site that it does not know, also those of an earlier file, and doubles nobody',
  async (t) => {
    const opened = await openBrand();
    const head = 'url,name,email\n';
    const gil = 'https://new-links.io/gil,Gil,gil@three.com\n';
    await imported(opened, `${head}${gil}https://one-site.com/a,Ida,ida@one-site.com\n`);
    const { id, key } = (await listed(opened)).find(({ name }) => name === 'Gil') as Json;
    const addresses = async () =>
      (await opened.caller.get(`${v1}/prospects/${id}/emails`)).data.map(({ email }: Json) => email);
    for (const settings of [
      { dry_run: true },
      {},
      { dry_run: true, update_existing: true },
      { update_existing: true },
    ]) {
      const others =
        'https://new-links.io/hal,Hal,hal@four.com\nhttps://new-links.io/ivy,,ivy@five.com\nhttps://new-links.io/jo,Jo,\n';
      const second = await imported(opened, `${head}${others}https://one-site.com/b,Ida,ida@gmail.com\n`, settings);
      t.match(counts(second), { total: 4, created: 0, refused: 3 }, JSON.stringify(settings));
      const { data } = await opened.caller.get(`${v1}/imports/${second.id}/errors`);
      t.same(
        data.map(({ line, field }: Json) => [line, field]),
        [
          [2, 'url'],
          [3, 'url'],
          [4, 'url'],
        ],
      );
      t.match(data[0].reason, `belongs to the site of the prospect ${id}, which has another name or address`);
      t.same(await addresses(), ['gil@three.com'], 'no address of another person');
    }
    t.match(await opened.caller.get(`${v1}/prospects/${id}`), { key, name: 'Gil', url: 'https://new-links.io/gil' });
    const same = await imported(opened, `${head}${gil}https://new-links.io/gil/about,GIL,gil@three.com\n`, {
      update_existing: true,
    });
    t.match(counts(same), { total: 2, created: 0, refused: 0 }, 'another page of the same person');
    t.equal((await listed(opened)).length, 2);
  },
);

t.test('reads numbers of followers as people write them, and never as another number', async (t) => {
  const opened = await openBrand();
  const written: [string, number | null][] = [
    ...([
      ['12000', 12_000],
      ['12.000', 12_000],
      ['12,000', 12_000],
      ["12'000", 12_000],
    ] as [string, number][]),
    ...([
      ['1 234 567', 1_234_567],
      ['1.234.567', 1_234_567],
      ['12000.0', 12_000],
    ] as [string, number][]),
    ...([
      ['12k', 12_000],
      ['1.2M', 1_200_000],
      ['1,25m', 1_250_000],
      ['0', 0],
    ] as [string, number][]),
    ...(['1.23', '1.234.56', '1.234,567', '0.500', '1.234k', '12 thousand', '1e5', '-3'].map((text) => [
      text,
      null,
    ]) as [string, null][]),
  ];
  const lines = written.map(([text], nth) => `n${nth}.com,"${text}"`);
  const read = await imported(opened, `url,followers\n${lines.join('\n')}\n`);
  t.same(counts(read), done({ total: 19, created: 11, refused: 8 }));
  const kept = new Map((await listed(opened)).map(({ key, followers }) => [key, followers]));
  t.same(
    written.map(([text], nth) => [text, kept.get(`n${nth}.com`) ?? null]),
    written,
  );
  const { data } = await opened.caller.get(`${v1}/imports/${read.id}/errors`);
  t.match(data[0], { field: 'followers', reason: 'must be a whole number, such as 12000, 12,000 or 1.2M' });
});

t.test('takes whatever ends the lines, also where they end in several ways', async (t) => {
  const opened = await openBrand();
  const files = [
    'url,name\r\n1a.com,A\n1b.com,B\n',
    'url,name\n2a.com,A\r2b.com,B',
    'url,name\r3a.com,A\r3b.com,B\r',
    'url,name\r\n4a.com,"A\nline"\r4b.com,B\r\n\r\n',
    '{"url":"5a.com","name":"A"}\r{"url":"5b.com","name":"B"}\r\n',
  ];
  for (const file of files)
    t.same(counts(await imported(opened, file)), done({ total: 2, created: 2 }), JSON.stringify(file));
  const wrong = await imported(opened, 'url,name\rxx.com,A\r,B\r');
  t.match(await opened.caller.get(`${v1}/imports/${wrong.id}/errors`), { data: [{ line: 3 }] });
});

t.test('takes back what the export wrote, unchanged', async (t) => {
  const opened = await openBrand();
  const texts = [
    '@ann.bakes',
    '-Bob-',
    '+1 cake',
    '=SUM(A1)',
    "'quoted'",
    "'@odd",
    "''=two",
    "O'Neil",
    '\tindented',
    '＝wide',
  ];
  const rows = texts.map((text, nth) => ({ url: `s${nth}.com`, 'custom.note': text, name: text.trim() }));
  await imported(opened, rows.map((row) => JSON.stringify(row)).join('\n'));
  await opened.caller.patch(`${v1}/prospects/${(await listed(opened, '&q=s8.com'))[0]?.id}`, {
    custom: { note: '\tindented' },
  });
  const shown = async () => (await listed(opened)).map(({ key, name, custom }) => [key, name, custom]);
  const before = await shown();
  const response = await fetch(new URL(`${v1}/prospects?brand_id=${opened.brand_id}&format=csv`, rail.address), {
    headers: { Authorization: `Bearer ${opened.caller.key}` },
  });
  const document = await response.text();
  const header = document.slice(0, document.indexOf('\r')).split(',');
  const known = ['key', 'channel', 'name', 'url'];
  const mapping = Object.fromEntries(
    header.filter((column) => !known.includes(column)).map((column) => [column, null]),
  );
  const again = await imported(opened, document, { mapping, update_existing: true });
  t.same(counts(again), done({ total: 10, unchanged: 10 }));
  t.same(await shown(), before);
});

t.test('takes 20 imports at a time, and says so', async (t) => {
  const opened = await openBrand();
  const { caller, brand_id } = opened;
  await rail.query(sql`
    insert into recruitment.import (organization_id, id, brand_id, state, format, mapping, dry_run, update_existing, total)
    select ${caller.organization_id}, 'fim_waiting' || n, ${brand_id}, 'queued', 'ndjson', '{}', true, false, 1 from generate_series(1, 20) n`);
  const body = { brand_id, document: 'url\na.com\n' };
  t.match(await caller.request('POST', `${v1}/prospects/import`, body), {
    status: 409,
    body: { error: { code: 'too_many_imports', message: /^20 imports/ } },
  });
  await rail.query(sql`
    delete from recruitment.import where organization_id = ${caller.organization_id} and id = 'fim_waiting1'`);
  t.match(await imported(opened, 'url\na.com\n'), { state: 'done', created: 1 });
});

async function rawPost({ key }: Caller, path: string, body: string, headers: Record<string, string>) {
  const response = await fetch(new URL(path, rail.address), {
    ...{ method: 'POST', headers: { ...headers, Authorization: `Bearer ${key}` }, body },
  });
  return { status: response.status, body: (await response.json()) as Json };
}

t.test('a dry run reports what would happen, and writes nothing', async (t) => {
  const opened = await openBrand();
  await imported(opened, 'url,name,email\na.com,A,a@a.com\nb.com,B,b@b.com\n');
  const document = 'url,name,email\na.com,A,a@a.com\nb.com,New,\nc.com,,c@c.com\nc.com,,\nd.com,,no address\n';
  const before = (await toldOf(opened.caller)).length;
  const dry = await imported(opened, document, { dry_run: true, update_existing: true });
  t.same([dry.created, dry.updated, dry.unchanged, dry.refused], [1, 1, 2, 1]);
  t.equal((await listed(opened)).length, 2);
  t.equal((await toldOf(opened.caller)).length, before);
  const real = await imported(opened, document, { update_existing: true });
  t.same({ ...counts(real) }, counts(dry));
});

t.test('leaves prospects that exist as they are, unless they are to be updated', async (t) => {
  const opened = await openBrand();
  await imported(opened, 'key,name,custom.tier\na.com,Old,gold\n');
  const document = 'key,name,custom.note,email\na.com,New,x,ada@a.com\n';
  t.same(counts(await imported(opened, document)), done({ total: 1, unchanged: 1 }));
  t.match(await listed(opened), [{ name: 'Old', email_status: 'none' }]);
  t.same(counts(await imported(opened, document, { update_existing: true })), done({ total: 1, updated: 1 }));
  t.match(await listed(opened), [{ name: 'New', email_status: 'found', custom: { tier: 'gold', note: 'x' } }]);
  t.same(counts(await imported(opened, document, { update_existing: true })), done({ total: 1, unchanged: 1 }));
});

t.test('an erased person who is imported again stays barred, and so does a barred domain', async (t) => {
  const opened = await openBrand();
  const { caller } = opened;
  const document =
    'url,email\nhttps://gone.com,Ada+news@gone.com\nhttps://two.com,x@barred.com\nhttps://free.com,y@free.com\n';
  await imported(opened, document.split('\n').slice(0, 2).join('\n'));
  const [gone] = await listed(opened);
  await caller.delete(`${v1}/prospects/${gone?.id}`);
  await caller.post(`${v1}/do_not_contact`, { kind: 'domain', domain: 'barred.com', reason: 'manual' });
  await imported(opened, document);
  const marks = (await listed(opened)).map(({ key, do_not_contact }) => [key, do_not_contact?.reason ?? null]);
  t.same(marks.toReversed(), [
    ['gone.com', 'legal'],
    ['two.com', 'manual'],
    ['free.com', null],
  ]);
});

t.test('two imports with the same people at a time make each of them once', async (t) => {
  const opened = await openBrand();
  const rows = Array.from({ length: 300 }, (_, nth) => `same${nth}.com,a${nth}@same${nth}.com`);
  const [one, two] = await Promise.all(
    [rows, rows.toReversed()].map((some) => imported(opened, `key,email\n${some.join('\n')}\n`)),
  );
  t.match([one, two], [{ state: 'done' }, { state: 'done' }]);
  t.equal(one?.created + two?.created, 300);
  t.equal(one?.unchanged + two?.unchanged, 300);
  const told = (await toldOf(opened.caller)).filter(({ type }) => type === 'affiliate.added');
  t.equal(new Set(told.map(({ prospect_id }) => prospect_id)).size, 300);
  t.equal(told.length, 300);
});

t.test('steps that run at a time come out as the file has them, one after the other', async (t) => {
  const opened = await openBrand();
  const isAgain = (nth: number) => nth % 2_000 === 1_990;
  const rows = Array.from({ length: 4_020 }, (_, nth) =>
    isAgain(nth) ? `step7.com,Again ${nth},a@other${nth}.com` : `step${nth}.com,Name ${nth},a@step${nth}.com`,
  );
  const done_import = await imported(opened, `key,name,email\r\n${rows.join('\n')}\n`, { update_existing: true });
  t.same(counts(done_import), done({ total: 4_020, created: 4_018, updated: 2 }));
  const [same] = await listed(opened, '&q=step7.com');
  t.equal(same?.name, 'Again 3990');
  t.equal((await opened.caller.get(`${v1}/prospects/${same?.id}/emails`)).data.length, 3);
  const told = (await toldOf(opened.caller)).filter(({ type }) => type === 'affiliate.added');
  const keys = new Map(
    (
      await rail.query<{ id: string; key: string }>(
        sql`select p.id, p.key from recruitment.prospect p where p.brand_id = ${opened.brand_id}`,
      )
    ).map(({ id, key }) => [id, key]),
  );
  t.same(
    told.map(({ prospect_id }) => keys.get(prospect_id)),
    rows.filter((_, nth) => !isAgain(nth)).map((row) => row.split(',')[0]),
  );
});
