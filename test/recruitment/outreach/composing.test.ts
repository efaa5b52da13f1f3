import { deepStrictEqual as deepEqual, strictEqual as equal } from 'node:assert/strict';
import fc from 'fast-check';
import { Parser } from 'htmlparser2';
import PostalMime from 'postal-mime';
import t from 'tap';
import { newId } from '../../../src/core/values/id.ts';
import { classifyMail } from '../../../src/mail/incoming/classify.ts';
import { chooseVariant } from '../../../src/recruitment/campaigns/step.ts';
import { shapeOf } from '../../../src/recruitment/campaigns/template_checks.ts';
import { composeMail, type Footer, type Mail } from '../../../src/recruitment/composing/mail.ts';
import {
  messageIdOf,
  replySubject,
  rowIdOf,
  rowIdsOf,
  threadHeaders,
} from '../../../src/recruitment/composing/message_ids.ts';
import { oneLine, plainText } from '../../../src/recruitment/composing/safe_text.ts';
import {
  knownValues,
  type TemplateFault,
  type TemplateValues,
  template_fields,
} from '../../../src/recruitment/composing/template_fields.ts';
import { checkTemplates, renderTemplates, type Templates } from '../../../src/recruitment/composing/templates.ts';
import {
  readUnsubscribeToken,
  unsubscribeMailto,
  unsubscribeToken,
  verifies,
} from '../../../src/recruitment/unsubscribing/link.ts';

const values: TemplateValues = {
  prospect: {
    name: 'Ada & <Sons>',
    url: 'https://ada.example/?a=1&b=2',
    key: 'ada.example',
    channel: 'website',
    country_code: null,
    language_code: 'en',
    custom: { first_name: 'Ada', tags: ['bread', 'tea'], topic: { name: 'rye' }, blank: ' ', none: null },
  },
  brand: { name: 'Breadly', website_url: 'https://breadly.example', sender_company: 'Breadly Ltd' },
  sender: { name: 'Grace', email: 'grace@breadly.example' },
  program: null,
};
const of = (body_text: string, more: Partial<Templates> = {}): Templates => ({ subject: 'Hello', body_text, ...more });
const text = (template: string, custom: object = {}) =>
  renderTemplates(of(template), {
    ...values,
    prospect: { ...values.prospect, custom: { ...values.prospect.custom, ...custom } },
  }).text;
const faultOf = (run: () => unknown): TemplateFault => {
  try {
    run();
  } catch (error) {
    return error as TemplateFault;
  }
  throw new Error('there is no fault');
};

t.test('renders templates', async (t) => {
  t.test('prints values as they are in text, and escaped in HTML', (t) => {
    const templates = {
      subject: '{{ prospect.name }}',
      body_text: 'Hi {{ prospect.name }}',
      body_html: '<i>{{ prospect.name }}</i>',
    };
    t.same(renderTemplates(templates, values), {
      subject: 'Ada & <Sons>',
      text: 'Hi Ada & <Sons>',
      html: '<i>Ada &amp; &lt;Sons&gt;</i>',
    });
    t.end();
  });

  t.test('makes HTML from the text: paragraphs, lines, links', (t) => {
    const { html } = renderTemplates(of('Hi <you>,\nsee {{ prospect.url }}.\n\n\nBye'), values);
    const link = 'https://ada.example/?a=1&amp;b=2';
    t.equal(html, `<p>Hi &lt;you&gt;,<br>see <a href="${link}">${link}</a>.</p>\n<p>Bye</p>`);
    t.end();
  });

  t.test('reads custom data, lists and what is not known', (t) => {
    t.equal(text('{{ prospect.first_name }} {{ prospect.custom.topic.name | upcase }}'), 'Ada RYE');
    t.equal(
      text('{% for tag in prospect.custom.tags %}{{ tag }};{% endfor %} {{ prospect.custom.tags }}'),
      'bread;tea; bread, tea',
    );
    t.equal(text('{{ prospect.country_code | default: "anywhere" }}'), 'anywhere');
    t.equal(text('{% if prospect.custom.blank %}yes{% else %}no{% endif %}'), 'no');
    t.equal(text('{{ prospect.first_name | default: "you" }}', { first_name: '' }), 'you');
    t.end();
  });

  t.test('names the variable that has no value', (t) => {
    const missing = (template: string) => faultOf(() => text(template));
    for (const name of [
      'prospect.country_code',
      'prospect.custom.blank',
      'prospect.custom.none',
      'prospect.custom.topic.size_of',
      'program.name',
    ]) {
      const { field, line, variable, message, remedy } = missing(`Hi\n\n{{ ${name} }}`);
      t.same({ field, line, variable }, { field: 'body_text', line: 3, variable: name });
      t.match(message, name);
      t.match(remedy, `{{ ${name} | default: "there" }}`);
    }
    t.match(
      missing('{{ prospect.custom.topic }}').message,
      '{{ prospect.custom.topic }} has no value, or one that is not a text.',
    );
    t.match(missing('{% assign x = prospect.country_code %}{{ x }}').message, '{{ x }}');
    t.match(missing(' {{ "" }} ').message, 'The result is empty');
    t.end();
  });

  t.test('keeps a subject on one line', (t) => {
    const { subject } = renderTemplates(of('x', { subject: 'Hi {{ prospect.name }}' }), {
      ...values,
      prospect: { ...values.prospect, name: 'A\r\nBcc: x@evil.example\0\u2028B' },
    });
    t.equal(subject, 'Hi A Bcc: x@evil.example B');
    t.end();
  });

  t.test('never reads a value as a template', (t) => {
    const name = '{{ brand.name }}{% include "x" %}{% raw %}';
    t.equal(
      renderTemplates(of('{{ prospect.name }}'), { ...values, prospect: { ...values.prospect, name } }).text,
      name,
    );
    t.end();
  });
});

t.test('checks templates', async (t) => {
  const faults = (template: string, field: keyof Templates = 'body_text') =>
    checkTemplates({ ...of('x'), [field]: template });
  const first = (template: string) => {
    const [fault] = faults(template);
    return fault && { line: fault.line, variable: fault.variable, message: fault.message, remedy: fault.remedy };
  };

  t.test('accepts every documented field', (t) => {
    for (const field of Object.keys(template_fields))
      t.same(faults(`{{ ${field.replace('*', 'anything')} }}`), [], field);
    t.same(
      faults(
        '{% assign x = brand.name %}{% for y in prospect.custom.tags %}{{ x }}{{ y }}{{ forloop.index }}{% endfor %}',
      ),
      [],
    );
    t.end();
  });

  t.test('tells field, line and remedy of a fault', (t) => {
    t.match(first('Hi\n{{ prospect.nam }}'), {
      line: 2,
      variable: 'prospect.nam',
      remedy: /prospect\.name, prospect\.first_name/,
    });
    t.match(first('{{ name }}'), { variable: 'name', remedy: /prospect\.name.*program\.name/ });
    t.match(first('{{ prospect.name | nope }}'), { message: 'There is no filter nope.', remedy: /default/ });
    t.match(first('\n\n{% if prospect.name %}'), { line: 3, message: /not closed/ });
    t.equal(faults('{{ a }}{{ b }}\n{{ c }}').length, 3);
    t.equal(faults('{{ a }}', 'subject')[0]?.field, 'subject');
    t.equal(faults('{{ a }}', 'body_html')[0]?.field, 'body_html');
    t.end();
  });

  t.test('leaves out what reads files, and what prints unescaped', (t) => {
    for (const tag of [
      'include "x"',
      'render "x"',
      'layout "x"',
      'block x',
      'echo brand.name',
      'cycle "a", "b"',
      'capture x',
      'liquid\necho brand.name',
      'increment x',
      'tablerow x in y',
    ]) {
      t.match(first(`{% ${tag} %}`)?.message, /^There is no tag/, tag);
    }
    for (const filter of ['raw', 'json', 'date', 'where_exp: "x", "y"', 'escape_once', 'inspect']) {
      t.match(first(`{{ brand.name | ${filter} }}`)?.message, /^There is no filter/, filter);
    }
    t.end();
  });

  t.test('hides prototypes', (t) => {
    for (const name of [
      'constructor',
      '__proto__',
      'toString',
      'prospect.constructor',
      'prospect.__proto__.x',
      'prospect["constructor"]',
      'prospect[brand.name]',
    ]) {
      t.equal(faults(`{{ ${name} }}`).length >= 1, true, name);
      t.equal(faultOf(() => text(`{{ ${name} }}`)).name, 'TemplateFault', name);
    }
    for (const name of [
      'constructor',
      '__proto__',
      'toString',
      'valueOf.name',
      'topic.constructor.name',
      'tags.constructor',
    ]) {
      t.equal(faultOf(() => text(`{{ prospect.custom.${name} }}`)).name, 'TemplateFault', name);
    }
    t.equal(text('{{ prospect.custom.constructor }}', { constructor: 'mine' }), 'mine');
    t.end();
  });

  t.test('ends what would run or grow without end, whatever the values', (t) => {
    const loops = (count: number, inner: string) =>
      `${'{% for a in (1..1000) %}'.repeat(count)}${inner}${'{% endfor %}'.repeat(count)}`;
    const hostile = [
      '{% for i in (1..1000000000) %}x{% endfor %}',
      '{% for i in (-1000000000..1000000000) %}x{% endfor %}',
      loops(4, ''),
      loops(3, 'x'.repeat(1000)),
      `{% assign a = "xxxxxxxxxx" %}${'{% assign a = a | append: a %}'.repeat(60)}{{ a }}`,
      `{% assign a = "x" %}{% for i in (1..1000) %}{% assign a = a | append: a %}{% endfor %}{{ a }}`,
      `{% assign a = "xx" %}${'{% assign a = a | replace: "x", a %}'.repeat(10)}{{ a }}`,
      `{% assign a = "a,b" | split: "," %}${loops(3, '{{ a | join: "," }}')}`,
      '{% if true %}'.repeat(1500),
      `{{ ${'('.repeat(5000)} }}`,
      `{{ prospect${'['.repeat(5000)} }}`,
      `{{ "x" ${'| append: "x" '.repeat(1300)}`,
      '{% raw %}'.repeat(1000),
      'x'.repeat(20_001),
      'x\n'.repeat(2001),
      '{{ brand.name }}'.repeat(400),
      `{% assign a = "${'x'.repeat(1000)}" %}{% if a contains a %}y{% endif %}`,
      `{{ "x" | replace: "${'x'.repeat(101)}", "" }}`,
    ];
    for (const template of hostile) {
      t.equal(faults(template).length, 1, template.slice(0, 60));
      t.equal(faultOf(() => text(template)).name, 'TemplateFault', template.slice(0, 60));
    }
    const big = { tags: Array.from({ length: 5000 }, (_, place) => `${place}`), size: 1e9, long: 'x'.repeat(10_000) };
    t.equal(
      faultOf(() => text(`${'{% for a in prospect.custom.tags %}'.repeat(3)}x${'{% endfor %}'.repeat(3)}`, big)).name,
      'TemplateFault',
    );
    t.equal(faultOf(() => text('{% for a in (1..prospect.custom.size) %}x{% endfor %}', big)).name, 'TemplateFault');
    const compared = `{% if prospect.custom.tags == prospect.custom.tags %}{% endif %}`;
    const repeated = `{% for a in prospect.custom.tags %}${compared}{% endfor %}x`;
    t.match(faultOf(() => text(repeated, big)).message, /takes too long/);
    t.match(faultOf(() => text('{{ prospect.custom.long }}'.repeat(9), big)).message, /bytes/);
    t.end();
  });
});

const message_id = 'fms_01kap3b6n8f2v9w4x7y0z1a2b3';
const url = `https://rail.example/recruitment/u/${unsubscribeToken(Buffer.alloc(32), { organization_id: newId('org'), message_id })}`;
const footer: Footer = {
  unsubscribe_url: url,
  unsubscribe_mailto: unsubscribeMailto('grace+u@breadly.example', message_id),
  sender_company: 'Breadly Ltd',
  postal_address: '1 Mill Lane\r\nCambridge, UK',
  privacy_url: 'https://breadly.example/privacy?a=1&b=2',
  found_at_url: 'https://ada.example/contact',
  language: 'en',
};
const footer_lines = [
  'Sent by: Breadly Ltd, 1 Mill Lane, Cambridge, UK',
  'We found your email address here: https://ada.example/contact',
  'Privacy policy: https://breadly.example/privacy?a=1&b=2',
  `Unsubscribe to stop receiving emails from us: ${url}`,
];
const mail: Mail = {
  from: { name: 'Grace', email: 'grace@breadly.example' },
  to: 'ada@ada.example',
  reply_to: null,
  subject: 'Hello',
  text: 'Hi Ada',
  html: '<p>Hi Ada</p>',
  message_id: messageIdOf(message_id, 'breadly.example'),
  date: new Date('2026-01-31T12:00:00Z'),
  footer,
};
const sent = async (changed: Partial<Mail> = {}) => {
  const raw = await composeMail({ ...mail, ...changed });
  return { raw: raw.toString('utf8'), ...(await PostalMime.parse(raw)) };
};
const names = (headers: { key: string }[]) => headers.map(({ key }) => key).sort();
const always = [
  'content-type',
  'date',
  'from',
  'list-unsubscribe',
  'list-unsubscribe-post',
  'message-id',
  'mime-version',
  'subject',
  'to',
  'x-rail-message',
];

t.test('prospects who have values for the same variables are rendered alike', (t) => {
  const templates = [
    ...[
      '{{ prospect.name }}',
      '{{prospect.name|default:"there"}} at {{ brand.name }}',
      '{{- prospect.custom.topic.name -}}!',
    ],
    ...[
      '{{ prospect.first_name | default: prospect.name }}',
      '{{ program.name }}',
      '{{ prospect.custom.a }} {{ prospect.custom.b }}',
    ],
  ];
  const unlike = [
    '{% if prospect.name %}x{% endif %}',
    '{{ prospect.name | upcase }}',
    '{{ prospect.custom.tags.size }}',
    '{{ "x" | append: "y" }}',
  ];
  const given = [
    'Ada',
    '&'.repeat(200),
    'https://ada.example/?a=1&b=2',
    'two\nlines',
    '7',
    ' ',
    '',
    null,
    undefined,
    7,
    true,
    ['x'],
    { name: 'rye' },
    '\u200b',
    'x'.repeat(300),
  ];
  for (const template of unlike) t.equal(shapeOf({ ...of(template), body_html: null }), undefined, template);
  for (const template of templates) {
    const texts = { subject: template, body_text: template, body_html: null };
    const shape = shapeOf(texts);
    const outcomes = new Map<string, string>();
    for (const [nth, one] of given.entries()) {
      const other = given[(nth * 7 + 3) % given.length];
      const custom = { first_name: other, topic: one, a: one, b: other };
      const prospect = { ...values.prospect, name: typeof one === 'string' ? one : null, custom };
      const key = shape?.(knownValues({ ...values, prospect }));
      if (key === undefined) continue;
      const { message } = faultOf(() => {
        renderTemplates(texts, { ...values, prospect });
        throw new Error('fine');
      });
      t.equal(outcomes.get(key) ?? message, message, `${template}: ${key}`);
      outcomes.set(key, message);
    }
    t.ok(outcomes.size > 0, template);
  }
  t.end();
});

t.test('composes a message', async (t) => {
  t.test('with its headers, both parts, the signature and the footer', async (t) => {
    const found = await sent({
      signature: 'Grace\nBreadly',
      reply_to: 'answers@breadly.example',
      in_reply_to: '<a@b>',
      references: '<z@b> <a@b>',
    });
    t.match(found, {
      from: { name: 'Grace', address: 'grace@breadly.example' },
      to: [{ address: 'ada@ada.example' }],
      replyTo: [{ address: 'answers@breadly.example' }],
      subject: 'Hello',
      messageId: `<${message_id}@breadly.example>`,
      date: '2026-01-31T12:00:00.000Z',
      inReplyTo: '<a@b>',
      references: '<z@b> <a@b>',
      text: `Hi Ada\n\n-- \nGrace\nBreadly\n\n---\n${footer_lines.join('\n')}\n`,
    });
    t.match(found.html, '<div><p>Hi Ada</p></div>\n<div><p>Grace<br>Breadly</p></div>\n<table role="presentation"');
    t.same(names(found.headers), [...always, 'in-reply-to', 'references', 'reply-to'].sort());
    const header = (key: string) => found.headers.find((header) => header.key === key)?.value;
    t.equal(
      header('list-unsubscribe'),
      `<${url}>, <mailto:grace%2Bu@breadly.example?subject=unsubscribe%20${message_id}>`,
    );
    t.equal(header('list-unsubscribe-post'), 'List-Unsubscribe=One-Click');
    t.equal(header('auto-submitted'), undefined);
  });

  t.test('as the same bytes each time', async (t) => {
    t.same(await composeMail(mail), await composeMail(structuredClone(mail)));
  });

  t.test('without a footer for a person’s answer, as plain text where there is no HTML', async (t) => {
    const found = await sent({ footer: null, html: null });
    t.equal(found.text, 'Hi Ada\n');
    t.equal(found.html, undefined);
    t.same(
      names(found.headers).filter((name) => name.startsWith('list-')),
      [],
    );
  });

  t.test('to addresses of all scripts', async (t) => {
    t.match((await sent({ to: 'jo@bücher.example' })).raw, 'To: jo@xn--bcher-kva.example\r\n');
    t.match((await sent({ to: 'юля@пример.example' })).raw, 'To: юля@пример.example\r\n');
    for (const to of ['a@b\r\nBcc: x@y', 'a@b, c@d', '<a@b>', 'a b@c', '', 'a@b@c', `${'x'.repeat(100)}@b.example`]) {
      await t.rejects(composeMail({ ...mail, to }), TypeError, to);
    }
    await t.rejects(composeMail({ ...mail, message_id: '<a@b>\r\nX: y' }), TypeError);
    await t.rejects(composeMail({ ...mail, footer: { ...footer, unsubscribe_url: 'javascript:alert(1)' } }), TypeError);
  });

  t.test('with the footer in six languages, and in English for others', async (t) => {
    const ends = {
      de: /Abmelden/,
      fr: /Se désinscrire/,
      es: /Darse de baja/,
      it: /Annulla l’iscrizione/,
      pt: /Cancelar/,
      en: /Unsubscribe/,
      ja: /Unsubscribe/,
      constructor: /Unsubscribe/,
    };
    for (const [language, expected] of Object.entries(ends)) {
      const { text, html } = await sent({ footer: { ...footer, language, found_at_url: null } });
      t.match(text, expected);
      t.match(html, expected);
      t.notMatch(text, 'ada.example/contact');
    }
  });
});

/** Texts that try to end a header, a line, a part or an element. */
const hostile_pieces = fc.constantFrom(
  ...[
    '\r\n',
    '\n',
    '\r',
    '\0',
    '\t',
    '\u000b',
    '\u2028',
    '\u202e',
    '\u200f',
    '\u2066',
    '\ud800',
    '😀',
    'é',
    '漢字',
    'م',
  ],
  ...[
    'Bcc: x@evil.example',
    '\r\nBcc: x@evil.example\r\n\r\n',
    'From: ',
    '=?utf-8?Q?=0D=0ABcc:_a?=',
    '=?utf-8?B?QQ==?=',
    '--',
    '\n.\n',
    '\n-- \n',
  ],
  ...[
    '"',
    "'",
    '<',
    '>',
    '&',
    ',',
    ';',
    ':',
    '@',
    '(',
    '\\',
    '{{ brand.name }}',
    '{%',
    '%}',
    '</div>',
    '<!--',
    '<a@b.example>',
  ],
);
const hostile_text = fc.oneof(
  fc
    .array(fc.oneof(hostile_pieces, fc.string({ unit: 'binary', maxLength: 20 })), { maxLength: 30 })
    .map((pieces) => pieces.join('')),
  fc.tuple(hostile_pieces, fc.nat(2000)).map(([piece, size]) => piece.repeat(Math.ceil(size / piece.length))),
);
const long_hostile_text = fc.oneof(
  hostile_text,
  hostile_pieces.map((piece) => piece.repeat(10_000 / piece.length)),
);
const visible = (text: string) => /[^\s\p{Cc}]/u.test(text);

t.test('makes one message with one sender, recipient and subject of any name and value', async (t) => {
  const templates = {
    subject: 'For {{ prospect.name | default: "you" }}',
    body_text: 'Hi {{ prospect.name | default: "you" }},\n{{ prospect.custom.note | default: "-" }}\nBye',
  };
  const property = fc.asyncProperty(hostile_text, long_hostile_text, hostile_text, async (name, note, from) => {
    const prospect = { ...values.prospect, name, custom: { note } };
    const rendered = renderTemplates(templates, { ...values, prospect });
    const sender = { name: from, email: 'grace@breadly.example' };
    const raw = await composeMail({ ...mail, ...rendered, from: sender, signature: name });
    const lines = raw.toString('latin1').split('\r\n');
    equal(lines.filter((line) => line.length > 998 || /[^\t\x20-\x7e]/.test(line)).length, 0);
    const found = await PostalMime.parse(raw);
    deepEqual(names(found.headers), always);
    deepEqual(found.from, { name: oneLine(from), address: sender.email });
    deepEqual(found.to, [{ name: '', address: 'ada@ada.example' }]);
    equal(found.subject, oneLine(`For ${visible(name) ? name : 'you'}`));
    const body = plainText(`Hi ${visible(name) ? name : 'you'},\n${visible(note) ? note : '-'}\nBye`);
    const signature = visible(name) ? `-- \n${plainText(name)}\n\n` : '';
    // The lines of a base64 part end with CRLF also for whoever reads it.
    equal(found.text?.replaceAll('\r\n', '\n').trimEnd(), `${body}\n\n${signature}---\n${footer_lines.join('\n')}`);
    equal(found.attachments.length, 0);
  });
  await t.resolves(fc.assert(property, { numRuns: 100 }));
});

const unwanted = ['style', 'script', 'title', 'textarea', 'template', 'iframe', 'form', 'select', 'svg', 'math'];

/** Returns the end of a document: the elements around its last text, and whether anything on the way could hide it. */
function endOf(html: string): { path: string[]; styles: string[]; elements: Set<string>; comments: number } {
  const open: string[] = [];
  const seen = { path: [] as string[], styles: [] as string[], elements: new Set<string>(), comments: 0 };
  const parser = new Parser({
    onopentag(name, { style }) {
      seen.elements.add(name);
      if (style) seen.styles.push(style);
      open.push(name);
    },
    ontext(text) {
      if (text.trim() !== '') seen.path = [...open];
    },
    onclosetag: () => void open.pop(),
    oncomment() {
      seen.comments += 1;
    },
  });
  parser.end(html);
  return seen;
}

t.test('ends every mail with the footer, outside of whatever the author writes', async (t) => {
  const hidden =
    /position|display|visibility|opacity|transform|clip|overflow|float|url|expression|:-|[( ]-\d|important|(^|;)(max-)?height/;
  const endsWithFooter = async (changed: Partial<Mail>) => {
    const { html = '', text = '' } = await sent(changed);
    equal(text.trimEnd().endsWith(`---\n${footer_lines.join('\n')}`), true);
    equal(html.slice(html.lastIndexOf('<table role="presentation"')).includes(`href="${url}"`), true);
    const { path, styles, elements, comments } = endOf(html);
    deepEqual(path, ['html', 'body', 'table', 'tr', 'td', 'a']);
    equal(comments, 0);
    deepEqual(
      unwanted.filter((name) => elements.has(name)),
      [],
    );
    deepEqual(
      styles.filter((style) => hidden.test(style)),
      [],
    );
  };
  const hostile = [
    '<style>table{display:none}</style>',
    '<STYLE>*{font-size:0}',
    '<p>Hi<!-- ',
    '</div></body></html><div style="display:none">',
    '<div style="display:none"><div style="position:fixed;top:0;height:100%;background:#fff">',
    '<textarea>',
    '<title>',
    '<plaintext>',
    '<script>document.write("<!--")',
    '<svg><style>*{display:none}</style><foreignObject><p>',
    '<math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;style&gt;">',
    '<noscript><style>td{color:#fff}',
    '<template><div>',
    '<select><option>',
    '<table><tr><td><div style="margin-bottom:-500px;line-height:0;width:1e9px">',
    '<a href="javascript:x" style="color:expression(1);background:url(x)" onclick="x" class="gmail_quote">x',
    '<link rel="stylesheet" href="https://evil.example/x.css"><base href="https://evil.example/"><meta http-equiv="refresh" content="0">',
    '<iframe srcdoc="<p>">',
    '<![CDATA[ <style> ]]>',
    '<?php <style>',
    '<div '.repeat(2000),
    '<b>'.repeat(5000),
    '<table><tr><td>'.repeat(2000),
  ];
  for (const html of hostile) await t.resolves(endsWithFooter({ html }), html.slice(0, 60));
  const tag = fc.constantFrom(
    ...'a b div p table tr td li ul span style script title textarea select svg math template form body html head noscript blockquote'.split(
      ' ',
    ),
  );
  const markup = fc.oneof(
    tag.map((name) => `<${name}>`),
    tag.map((name) => `</${name}>`),
    fc
      .tuple(
        tag,
        fc.constantFrom('display:none', 'position:absolute', 'height:0', 'margin:-9px', 'color:red', 'line-height:0'),
      )
      .map(([name, style]) => `<${name} style="${style}">`),
    fc.constantFrom('<!--', '-->', '<![CDATA[', ']]>', '<', '>', '"', "'", '<a href="', "<p x='", 'text', '\0', '/>'),
  );
  const property = fc.asyncProperty(fc.array(markup, { maxLength: 40 }), (pieces) =>
    endsWithFooter({ html: pieces.join('') }),
  );
  await t.resolves(fc.assert(property, { numRuns: 100 }));
  await t.resolves(endsWithFooter({ text: `Hi${'\n'.repeat(5000)}---\n` }));
  await t.rejects(sent({ html: '&'.repeat(30_000) }), RangeError, 'Gmail would not show the end');
  t.match((await sent({ text: `Hi${'\n'.repeat(5000)}Bye` })).text, 'Hi\n\n\nBye\n\n---');
});

t.test('keeps of HTML what a mail needs', async (t) => {
  const html =
    '<p style="color: #333; font-family: Arial, \'Helvetica Neue\', sans-serif; line-height: 1.5">Hi <b>Ada</b>,<br><a href="https://breadly.example/?a=1&amp;b=2" title="x">see</a> <img src="https://breadly.example/x.png" alt="A loaf" width="20"></p><ul><li>one<li>two</ul>';
  const kept =
    '<p style="color:#333;font-family:Arial, &#39;Helvetica Neue&#39;, sans-serif;line-height:1.5">Hi <b>Ada</b>,<br><a href="https://breadly.example/?a=1&amp;b=2" title="x">see</a> <img src="https://breadly.example/x.png" alt="A loaf" width="20"></p><ul><li>one</li><li>two</li></ul>';
  t.match((await sent({ html })).html, `<div>${kept}</div>`);
});

t.test('threads answers', (t) => {
  t.equal(replySubject('Hello'), 'Re: Hello');
  t.equal(replySubject('RE : Hello'), 'RE : Hello');
  t.same(threadHeaders({ message_id: '<b@x>', references: null }), { in_reply_to: '<b@x>', references: '<b@x>' });
  t.same(threadHeaders({ message_id: '<b@x>', references: '<a@x>\r\n <é@x> <b@x> junk\0' }), {
    in_reply_to: '<b@x>',
    references: '<a@x> <b@x>',
  });
  const long = Array.from({ length: 500 }, (_, place) => `<${place}@x>`).join(' ');
  const { references } = threadHeaders({ message_id: '<last@x>', references: long });
  t.equal(references, '<0@x> <492@x> <493@x> <494@x> <495@x> <496@x> <497@x> <498@x> <499@x> <last@x>');
  t.equal(messageIdOf(message_id, 'bücher.example'), `<${message_id}@xn--bcher-kva.example>`);
  t.throws(() => messageIdOf(message_id, 'a>\r\nb'), TypeError);
  t.throws(() => messageIdOf('fms_1', 'a.example'), TypeError);
  t.equal(rowIdOf(`<${message_id}@breadly.example>`), message_id);
  t.equal(rowIdOf(`Re: unsubscribe ${message_id.toUpperCase()}`), message_id);
  t.same(rowIdsOf(`<${message_id}@a> <x${message_id}@b> <${newId('fsq')}@c>`), [message_id]);
  t.equal(rowIdOf('nothing'), null);
  t.end();
});

/** Answers to the message as mail programs write them. */
const quoting = {
  Gmail: (text: string) =>
    `On Sat, Jan 31, 2026 at 12:00 PM Grace <grace@breadly.example> wrote:\n\n${text.replace(/^/gm, '> ')}`,
  Thunderbird: (text: string) => `On 1/31/26 12:00 PM, Grace wrote:\n${text.replace(/^/gm, '> ')}`,
  Outlook: (text: string) =>
    `________________________________\nFrom: Grace <grace@breadly.example>\nSent: Saturday, January 31, 2026 12:00 PM\nTo: Ada <ada@ada.example>\nSubject: Hello\n\n${text}`,
  Apple: (text: string) =>
    `> On 31 Jan 2026, at 12:00, Grace <grace@breadly.example> wrote:\n>\n${text.replace(/^/gm, '> ')}`,
};

t.test('is cut from the answers that quote it', async (t) => {
  const readMeaning = () => ({ kind: 'positive', confidence: 1, language: 'en', unsubscribe: false });
  const context = { own_addresses: ['grace@breadly.example'], readMeaning, now: mail.date };
  const answer = (lines: string[]) =>
    classifyMail(Buffer.from(['From: ada@ada.example', ...lines].join('\r\n')), context);
  for (const signature of [null, 'Grace Hopper\nBreadly Ltd']) {
    const { text = '', html = '' } = await sent({ signature });
    for (const [program, quoted] of Object.entries(quoting)) {
      const found = await answer(['Subject: Re: Hello', '', 'Yes, tell me more.', '', quoted(text)]);
      t.match(found, { kind: 'reply', text: 'Yes, tell me more.' }, program);
    }
    const quoted = html.split(/<.?body>/)[1];
    const body = `<div dir="ltr">Yes, tell me more.</div><br><div class="gmail_quote"><div class="gmail_attr">On Sat, Jan 31, 2026 at 12:00 PM Grace wrote:<br></div><blockquote class="gmail_quote">${quoted}</blockquote></div>`;
    const found = await answer(['Subject: Re: Hello', 'Content-Type: text/html; charset=utf-8', '', body]);
    t.match(found, { kind: 'reply', text: 'Yes, tell me more.' }, 'HTML');
  }
  const subject = decodeURIComponent(footer.unsubscribe_mailto.split('subject=')[1] as string);
  t.match(await answer([`Subject: ${subject}`, '', '']), { kind: 'unsubscribe', unsubscribe_id: message_id });
});

t.test('chooses variants by weight, and the same one each time', (t) => {
  const counts = [0, 0, 0, 0];
  for (let n = 0; n < 4000; n++) {
    const place = chooseVariant({ weights: [1, 0, 2, 1], seed: `fsq_${n}:0` });
    if (chooseVariant({ weights: [1, 0, 2, 1], seed: `fsq_${n}:0` }) !== place) t.fail('not sticky');
    counts[place] = (counts[place] ?? 0) + 1;
  }
  t.equal(counts[1], 0);
  for (const [place, share] of [1000, 0, 2000, 1000].entries())
    t.ok(Math.abs((counts[place] ?? 0) - share) < 150, `${counts}`);
  t.equal(chooseVariant({ weights: [0, 0], seed: 'x' }), 0);
  t.end();
});

t.test('makes unsubscribe tokens that nobody else can make', (t) => {
  const key = Buffer.alloc(32, 7);
  const ids = { organization_id: newId('org'), message_id: newId('fms') };
  const token = unsubscribeToken(key, ids);
  const read = (text: string) => readUnsubscribeToken(text) ?? t.fail(`not a token: ${text}`);
  const holds = (text: string, by = key) => {
    const found = readUnsubscribeToken(text);
    return found !== null && verifies(by, found);
  };
  t.match(token, /^[0-9a-z]{78}$/);
  t.match(read(token), ids);
  t.ok(holds(token));
  t.ok(holds(token.toUpperCase()), 'servers may change the case');
  t.notOk(holds(token, Buffer.alloc(32, 8)));
  for (const [place, digit] of [...token].entries()) {
    for (const other of ['0', '1', '7', 'z']) {
      if (other !== digit) t.notOk(holds(token.slice(0, place) + other + token.slice(place + 1)), `${place}: ${other}`);
    }
  }
  const swapped = token.slice(26, 52) + token.slice(0, 26) + token.slice(52);
  for (const text of [
    swapped,
    token.slice(1),
    `${token}0`,
    `${token}\n`,
    '',
    '8'.repeat(78),
    'x'.repeat(1e6),
    token.replace(/.$/, 'é'),
  ])
    t.notOk(holds(text));
  fc.assert(fc.property(fc.string({ unit: 'binary', maxLength: 100 }), (text) => !holds(text)));
  t.throws(() => unsubscribeToken(key, { ...ids, message_id: 'sample_fms_01' }), TypeError);
  t.end();
});
