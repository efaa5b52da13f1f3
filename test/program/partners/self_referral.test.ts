import fc from 'fast-check';
import t from 'tap';
import { normaliseEmail, type SelfReferralFacts, selfReferralBy } from '../../../src/program/partners/self_referral.ts';

const runs = { numRuns: 10_000 };

t.test(
  'normaliseEmail folds case, dots and plus tags of the local part, at every host, and takes googlemail.com for gmail.com',
  async (t) => {
    for (const [email, expected] of [
      ['ann@example.com', 'ann@example.com'],
      [' Ann@Example.COM ', 'ann@example.com'],
      ['a.n.n@example.com', 'ann@example.com'],
      ['ann+deals@example.com', 'ann@example.com'],
      ['A.nn+x+y.z@Mail.Example.com', 'ann@mail.example.com'],
      ['ann.lee@sub.example.co.uk', 'annlee@sub.example.co.uk'],
      ['ann+@example.com', 'ann@example.com'],
      ['+ann@example.com', '+ann@example.com'],
      ['a.nn@googlemail.com', 'ann@gmail.com'],
      ['Ann@GoogleMail.com', 'ann@gmail.com'],
      ['ann@mail.googlemail.com', 'ann@mail.googlemail.com'],
      ['+bob@example.com', '+bob@example.com'],
      ['..@example.com', '..@example.com'],
      ['"a.b@c.d"@example.com', '"ab@cd"@example.com'],
      ['"a.nn"@example.com', 'ann@example.com'],
      ['“Ann@example.com”', 'ann@example.com'],
      ['Ann Lee <ann@example.com>', 'ann@example.com'],
      ['<ann@example.com>', 'ann@example.com'],
      ['mailto:ann@example.com?subject=Hi', 'ann@example.com'],
      ['ann@example.com.', 'ann@example.com'],
      ['(ann@example.com),', 'ann@example.com'],
      ['ann @ example.com', 'ann@example.com'],
      ['ａnn＠example.com', 'ann@example.com'],
      ['an\u200bn@example.com', 'ann@example.com'],
      ['ann@müller.example', 'ann@xn--mller-kva.example'],
      ['Not An Address', 'not an address'],
      ['', ''],
    ] as const) {
      t.equal(normaliseEmail(email), expected, email);
    }
  },
);

t.test('normaliseEmail changes nothing the second time, keeps the host, and never empties the local part', async () => {
  const odd = fc.tuple(fc.string({ unit: fc.constantFrom('a', 'B', '.', '+', '-'), minLength: 1 }), fc.domain());
  const email = fc.oneof(
    fc.emailAddress(),
    odd.map(([local, host]) => `${local}@${host}`),
  );
  fc.assert(
    fc.property(email, (email) => {
      const once = normaliseEmail(email);
      const host = email.slice(email.lastIndexOf('@')).toLowerCase();
      return normaliseEmail(once) === once && once.endsWith(host) && once.length > host.length;
    }),
    runs,
  );
});

t.test('normaliseEmail gives all spellings of a mailbox one form, and different mailboxes different ones', async () => {
  const name = fc.string({ unit: fc.constantFrom(...'abcxyz019_-'), minLength: 1, maxLength: 12 });
  const disguise = fc.record({
    dots: fc.array(fc.boolean(), { minLength: 12 }),
    tag: fc.option(name),
    upper: fc.boolean(),
  });
  fc.assert(
    fc.property(name, name, disguise, (mine, other, { dots, tag, upper }) => {
      const dotted = [...mine].map((char, index) => (dots[index] ? `${char}.` : char)).join('');
      const tagged = `${dotted}${tag === null ? '' : `+${tag}.x`}@example.com`;
      const disguised = normaliseEmail(upper ? tagged.toUpperCase() : tagged);
      return (
        disguised === `${mine}@example.com` && (mine === other || disguised !== normaliseEmail(`${other}@example.com`))
      );
    }),
    runs,
  );
});

t.test('selfReferralBy matches the partner’s email, or IP hash and user agent together', async (t) => {
  const visit = { ip_hash: 'h1', user_agent: 'Firefox' };
  const stranger: SelfReferralFacts = {
    partner_email: 'ann@example.com',
    customer_email: 'bob@example.com',
    partner_visits: [{ ip_hash: 'h0', user_agent: 'Safari' }, visit],
    clicks: [{ ip_hash: 'h2', user_agent: 'Chrome' }],
  };
  const noAgent = { ip_hash: 'h1', user_agent: null };
  const noAddress = { ip_hash: null, user_agent: 'Firefox' };
  const unknown = { ip_hash: null, user_agent: null };
  const cases: [expected: 'email' | 'browser' | undefined, name: string, over: Partial<SelfReferralFacts>][] = [
    [undefined, 'a stranger', {}],
    ['email', 'the same email', { customer_email: 'ann@example.com' }],
    ['email', 'the same email in disguise', { customer_email: 'A.N.N+shop@EXAMPLE.com' }],
    [
      'email',
      'the partner is the one in disguise',
      { partner_email: 'a.nn+rail@example.com', customer_email: 'ann@example.com' },
    ],
    [undefined, 'the same name at another host', { customer_email: 'ann@example.org' }],
    ['browser', 'the same browser', { clicks: [visit] }],
    ['browser', 'the same browser, email unknown', { clicks: [visit], customer_email: null }],
    [undefined, 'the same address, another browser', { clicks: [{ ...visit, user_agent: 'Chrome' }] }],
    [undefined, 'another address, the same browser', { clicks: [{ ...visit, ip_hash: 'h2' }] }],
    [undefined, 'address of one visit, browser of another', { clicks: [{ ip_hash: 'h0', user_agent: 'Firefox' }] }],
    [undefined, 'no click, no email', { clicks: [], customer_email: null }],
    [undefined, 'no visits of the partner', { clicks: [visit], partner_visits: [] }],
    [undefined, 'two unknowns are no evidence', { clicks: [unknown], partner_visits: [unknown] }],
    [undefined, 'nor is an address alone', { clicks: [noAgent], partner_visits: [noAgent] }],
    [undefined, 'nor a browser alone', { clicks: [noAddress], partner_visits: [noAddress] }],
  ];
  for (const [expected, name, over] of cases) t.equal(selfReferralBy({ ...stranger, ...over }), expected, name);
});
