import t from 'tap';
import { contactsOf } from '../../../src/recruitment/addresses/contacts.ts';
import { type Reveal, revealAddresses } from '../../../src/recruitment/addresses/reveal.ts';
import type { Evidence } from '../../../src/recruitment/evidence/evidence.ts';
import { assess } from '../../../src/recruitment/evidence/score.ts';
import { readPage } from '../../../src/recruitment/pages/read.ts';
import { visit } from '../../../src/recruitment/pages/visit.ts';
import { blogs, coupon_sites } from './blogs.ts';
import { startFarm } from './farm.ts';
import { brand, type GoldenSite } from './golden.ts';
import { hidden } from './hidden.ts';
import { hostile, stalls } from './hostile.ts';
import { languages } from './languages.ts';
import { podcasts } from './podcasts.ts';
import { shops } from './shops.ts';
import { Tally } from './tally.ts';

const sites: GoldenSite[] = [...blogs, ...coupon_sites, ...podcasts, ...languages, ...shops, ...hidden, ...hostile];
const at_once = 12;
const farm = await startFarm(t, sites);
const hasty = farm.visitorWith({ timeout_ms: 300 });

t.test('has a hundred sites in ten languages', (t) => {
  t.ok(sites.length >= 100, `${sites.length} sites`);
  t.equal(new Set(sites.map(({ host }) => host)).size, sites.length);
  t.ok(new Set(sites.map(({ golden }) => golden.language)).size >= 10);
  t.end();
});

t.test('finds on each site what a person finds there, and scores it', async (t) => {
  const tally = new Tally();
  await forEach(sites, async ({ host, path = '/', golden }) => {
    const visited = await visit(farm.url(host, path), stalls.has(host) ? hasty : farm.visitor);
    const { outcome = 'page' } = golden;
    if (visited.outcome !== outcome) t.equal(visited.outcome, outcome, host);
    if (visited.outcome !== 'page') return;
    const page = readPage(visited.text, visited.url, visited.content);
    const { evidence, score } = assess(page, brand);
    if (golden.language !== undefined && page.language_code !== golden.language)
      t.equal(page.language_code, golden.language, host);
    if (golden.evidence) tally.compare(host, evidence.map(nameOf), golden.evidence);
    if (golden.score && !(golden.score[0] <= score && score <= golden.score[1]))
      t.fail(`${host}: ${score} is not within ${golden.score}`);
  });
  tally.check(t, 'evidence');
});

t.test('reveals the addresses that each site shows, the best one first', async (t) => {
  const tally = new Tally();
  const reveals = new Map<string, Reveal>();
  const revealed = sites.filter(({ golden }) => golden.addresses);
  await forEach(revealed, async ({ host, path = '/', golden: { addresses = [] } }) => {
    const reveal = await revealAddresses(farm.url(host, path), {
      visitor: farm.visitor,
      read: async (page) => contactsOf(page),
      nameServers: farm.nameServers,
      now: () => '2026-11-22T00:00:00.000Z',
    });
    reveals.set(host, reveal);
    const found = reveal.addresses.map(({ email }) => email);
    tally.compare(host, found, addresses);
    if (found.length === addresses.length && found[0] !== addresses[0]) t.same(found, addresses, host);
    if (reveal.visited.length > 6) t.fail(`${host} was asked for ${reveal.visited.length} pages`);
  });
  tally.check(t, 'addresses');
  const verified = ['nullmx-mail.com', 'nodnsanswer-mail.com', 'plainmailto.com', 'kitchengearhq.com'].map(
    (host) => reveals.get(host)?.addresses[0]?.verification,
  );
  t.same(verified, ['invalid', 'unknown', 'unknown', 'unknown']);
  t.match(reveals.get('bracketsmail.com')?.addresses[0], {
    ...{
      email: 'ida@bracketsmail.com',
      source_url: farm.url('bracketsmail.com'),
      found_at: '2026-11-22T00:00:00.000Z',
    },
    ...{ page_kind: 'home', manner: 'obfuscated', mailbox: 'person', is_own_domain: true },
  });
  t.same(
    reveals.get('rankingmail.com')?.addresses.map(({ email }) => email),
    hidden.find(({ host }) => host === 'rankingmail.com')?.golden.addresses,
  );
});

t.test('asks no page that robots.txt forbids', (t) => {
  const asked = farm.requests.map(({ host, path }) => host + path);
  t.notOk(asked.includes('forbiddencontact.com/contact'));
  t.notOk(asked.includes('forbids-robots.com/'));
  t.end();
});

function nameOf({ kind, url, text }: Evidence): string {
  return `${kind} ${kind === 'coupon_page' ? URL.parse(url)?.pathname : text.split(': ')[0]}`;
}

async function forEach<T>(all: T[], work: (each: T) => Promise<void>): Promise<void> {
  const waiting = [...all];
  const workers = Array.from({ length: at_once }, async () => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) await work(next);
  });
  await Promise.all(workers);
}
