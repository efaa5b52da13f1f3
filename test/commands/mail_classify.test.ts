import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { command } from '../command_process.ts';
import { crlf, mail } from '../mail/incoming/mails.ts';

const directory = t.testdir();
const write = async (name: string, raw: string): Promise<string> => {
  const file = join(directory, name);
  await writeFile(file, crlf(raw));
  return file;
};
const reply = await write(
  'reply.eml',
  mail(
    {},
    'Sounds good, please send me the details!\n\nOn Mon, Feb 2, 2026 at 10:04 AM Ada <ada@shop.example> wrote:\n> Hello',
  ),
);
const bounce = await write(
  'bounce.eml',
  mail(
    { From: 'MAILER-DAEMON@mx.example', Subject: 'Undelivered Mail Returned to Sender' },
    '<grace@blog.example>: 550 5.1.1 User unknown\nYour message could not be delivered.',
  ),
);

/** Runs the command. */
const classify = (args: string[], input = '') => command(['mail', 'classify', ...args], {}, input);
const linesOf = (stdout: string): object[] =>
  stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));

t.test('prints a JSON document for each mail, and names the file that it cannot read', async (t) => {
  const missing = join(directory, 'missing.eml');
  const { code, stdout, stderr } = await classify(['--json', reply, missing, bounce]);
  t.equal(code, 1, 'one file could not be read');
  t.match(stderr, /^rail: .*missing\.eml: no such file\.\n$/);
  const [first, second, ...others] = linesOf(stdout);
  t.match(first, {
    file: reply,
    kind: 'reply',
    text: 'Sounds good, please send me the details!',
    language: 'en',
    reply_kind: 'positive',
    recipients: [],
    resumes_on: null,
  });
  t.match(second, {
    file: bounce,
    kind: 'bounce',
    recipients: [{ address: 'grace@blog.example', status: '5.1.1', hard: true }],
  });
  t.same(others, []);
});

t.test('reads a mail from standard input, and prints a table', async (t) => {
  const { code, stdout } = await classify(
    ['-'],
    mail({ Subject: 'Automatic reply: x' }, 'Back on 12 March 2026.\u001b[2J'),
  );
  t.equal(code, 0);
  t.match(stdout, /^KIND +DETAIL +FILE +TEXT\nauto_reply +until 2026-03-12 +- +Back on 12 March 2026\. \[2J\n$/);
  t.match(
    (await classify(['--own', 'ada@blog.example', '--own', 'grace@blog.example', reply])).stdout,
    /\nown +.*reply\.eml/,
  );
});

t.test('classifies texts, a line each', async (t) => {
  const texts = [
    { id: 'd1', subject: 'Re: Program', text: 'Yes please, how do I sign up?' },
    { id: 2, text: 'Please take me off your list, thank you.' },
    { id: 'd3', subject: 'Out of office', text: 'I am back on 12 March.' },
  ];
  const { code, stdout, stderr } = await classify(
    ['--jsonl', '--json'],
    `${texts.map((text) => JSON.stringify(text)).join('\n')}\n{"id": 4}\nnot JSON\n`,
  );
  t.equal(code, 1);
  t.match(stderr, /^rail: line 4 must have .*'text'.*\nrail: line 5 is not valid JSON\.\n$/);
  t.match(linesOf(stdout), [
    { id: 'd1', kind: 'reply', reply_kind: 'positive' },
    { id: 2, kind: 'unsubscribe' },
    { id: 'd3', kind: 'auto_reply', resumes_on: /-03-12$/ },
  ]);
});

t.test('files and --jsonl exclude one another', async (t) => {
  const { code, stdout, stderr } = await classify(['--jsonl', reply]);
  const message = 'rail: Give either files or --jsonl: --jsonl reads standard input.\n';
  t.same({ code, stdout, stderr }, { code: 2, stdout: '', stderr: message });
});

t.test('shows no kind of a reply without text, which needs review', async (t) => {
  const { stdout } = await classify(['-'], mail({ Subject: 'Re: Program' }, ''));
  t.match(stdout, /\nreply +review +-\n$/);
});
