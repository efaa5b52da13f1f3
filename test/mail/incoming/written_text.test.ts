import t from 'tap';
import { boundedHtml } from '../../../src/mail/incoming/writing/bounded_html.ts';
import { readHtml } from '../../../src/mail/incoming/writing/html.ts';
import { readWritten } from '../../../src/mail/incoming/writing/written_text.ts';

/** The text that the writer adds, unless a case says otherwise; and the quoted text. */
const new_text = 'Sounds good.\n\nPlease send me the details.';
const old_lines = ['Hello Grace,', '', 'would you like to join our program?', 'Ada'];
const marked = old_lines.map((line) => `> ${line}`.trimEnd()).join('\n');
const plain = old_lines.join('\n');
const header = (lines: string[]): string => `${lines.join('\n')}\n\n${plain}`;

const attributions: Record<string, string[]> = {
  en: [
    'On Mon, Feb 2, 2026 at 10:04 AM Ada Lovelace <ada@shop.example> wrote:',
    'On Mon, Feb 2, 2026 at 10:04 AM Ada Lovelace <ada@shop.example>\nwrote:',
    'On 2 Feb 2026, at 10:04, Ada Lovelace <ada@shop.example> wrote:',
    'On 02/02/2026 10:04, Ada Lovelace wrote:',
    'On Mon, 2026-02-02 at 10:04 +0000, Ada wrote:',
    'On 2/2/26, Ada <ada@shop.example> wrote:',
    'At 2/2/2026 10:04 AM, you wrote:',
    'Ada Lovelace <ada@shop.example> wrote on 02.02.2026 10:04:',
    'Ada Lovelace <ada@shop.example> writes:',
    '---- On Mon, 02 Feb 2026 10:04:00 +0000 Ada <ada@shop.example> wrote ----',
    '2026-02-02 10:04 GMT+01:00 Ada Lovelace <ada@shop.example>:',
    'Monday, February 2, 2026, 10:04 AM, Ada <ada@shop.example> wrote:',
  ],
  de: [
    'Am Mo., 2. Feb. 2026 um 10:04 Uhr schrieb Ada Lovelace <ada@shop.example>:',
    'Am 02.02.2026 um 10:04 schrieb Ada Lovelace:',
    'Am 02.02.26 um 10:04 schrieb "Ada" <ada@shop.example>:',
    'Am 02.02.2026 10:04 schrieb\nAda Lovelace <ada@shop.example>:',
    'Am Montag, 2. Februar 2026, 10:04:00 MEZ hat Ada <ada@shop.example> Folgendes geschrieben:',
    'Ada Lovelace <ada@shop.example> schrieb am Mo., 2. Feb. 2026, 10:04:',
    'Von Ada Lovelace geschrieben am 02.02.2026 10:04:',
  ],
  fr: [
    'Le lun. 2 févr. 2026 à 10:04, Ada Lovelace <ada@shop.example> a écrit :',
    'Le 2 février 2026 à 10:04, Ada Lovelace\n<ada@shop.example> a écrit :',
    'Le 02/02/2026 à 10:04, Ada Lovelace a écrit :',
    'Le 2 févr. 2026 à 10h04, Ada <ada@shop.example> a écrit:',
    'Le lundi 2 février 2026 10:04, Ada <ada@shop.example> écrivait :',
  ],
  es: [
    'El lun, 2 feb 2026 a las 10:04, Ada Lovelace (<ada@shop.example>) escribió:',
    'El 2 de febrero de 2026, 10:04, Ada <ada@shop.example> escribió:',
    'El 02/02/2026 a las 10:04, Ada escribió:',
    'El lunes, 2 de febrero de 2026, Ada escribió:',
    'El 2/2/26 10:04, Ada Lovelace <ada@shop.example>\nescribió:',
  ],
  it: [
    'Il giorno lun 2 feb 2026 alle ore 10:04 Ada Lovelace <ada@shop.example> ha scritto:',
    'Il 02/02/2026 10:04, Ada Lovelace ha scritto:',
    'Il 2 febbraio 2026 alle 10:04, Ada <ada@shop.example>\nha scritto:',
    'Il lun, 2 feb 2026, 10:04 Ada <ada@shop.example> ha scritto:',
  ],
  pt: [
    'Em seg., 2 de fev. de 2026 às 10:04, Ada Lovelace <ada@shop.example> escreveu:',
    'Em 02/02/2026 10:04, Ada Lovelace escreveu:',
    'Em 2 de fevereiro de 2026 10:04, Ada <ada@shop.example>\nescreveu:',
    'No dia 2 de fevereiro de 2026, às 10:04, Ada <ada@shop.example> escreveu:',
  ],
  others: [
    'Op ma 2 feb. 2026 om 10:04 schreef Ada <ada@shop.example>:',
    'Den mån 2 feb. 2026 kl 10:04 skrev Ada <ada@shop.example>:',
    'W dniu 02.02.2026 o 10:04 Ada pisze:',
    '2 февраля 2026 г., 10:04, Ада <ada@shop.example> написал(а):',
    '在 2026年2月2日，上午10:04，Ada <ada@shop.example> 写道：',
    '02.02.2026, 10:04, "Ada" <ada@shop.example>:',
    '2026年2月2日(月) 10:04 Ada <ada@shop.example>:',
    'Quoting Ada Lovelace <ada@shop.example>:',
    '##- Please type your reply above this line -##',
  ],
};

const separators = [
  '-----Original Message-----',
  '----- Original Message -----',
  '-------- Original message --------',
  '--- Original Message ---',
  '-----Ursprüngliche Nachricht-----',
  '-------- Ursprüngliche Nachricht --------',
  '-----Message d’origine-----',
  '-------- Message original --------',
  '-----Mensaje original-----',
  '-----Messaggio originale-----',
  '-----Mensagem original-----',
  '---------- Forwarded message ---------',
  '---------- Weitergeleitete Nachricht ---------',
  'Begin forwarded message:',
  'Anfang der weitergeleiteten Nachricht:',
  'Début du message réexpédié :',
  'Inicio del mensaje reenviado:',
  'Inizio messaggio inoltrato:',
  'Início da mensagem reencaminhada:',
];

const headers: Record<string, string[]> = {
  English: [
    'From: Ada Lovelace <ada@shop.example>',
    'Sent: Monday, February 2, 2026 10:04 AM',
    'To: Grace <grace@blog.example>',
    'Subject: A program',
  ],
  'English, in bold': [
    '*From:* Ada Lovelace <ada@shop.example>',
    '*Sent:* Monday, February 2, 2026 10:04 AM',
    '*To:* Grace',
    '*Subject:* A program',
  ],
  'English, below a line': [
    '________________________________',
    'From: Ada Lovelace <ada@shop.example>',
    'Sent: 2 February 2026 10:04',
    'To: Grace',
    'Subject: A program',
  ],
  'English, of two lines': ['From: Ada Lovelace <ada@shop.example>', 'Subject: A program'],
  'English, many recipients': [
    'From: Ada <ada@shop.example>',
    'Date: Monday, 2 February 2026',
    'To: Grace <grace@blog.example>, Bob <bob@blog.example>,',
    ' Carol <carol@blog.example>',
    'Cc: Dan',
    'Subject: A program',
  ],
  German: [
    'Von: Ada Lovelace <ada@shop.example>',
    'Gesendet: Montag, 2. Februar 2026 10:04',
    'An: Grace',
    'Betreff: Ein Programm',
  ],
  'German, of Apple': [
    'Von: Ada <ada@shop.example>',
    'Betreff: Ein Programm',
    'Datum: 2. Februar 2026 um 10:04:00 MEZ',
    'An: Grace',
  ],
  French: [
    'De : Ada Lovelace <ada@shop.example>',
    'Envoyé : lundi 2 février 2026 10:04',
    'À : Grace',
    'Objet : Un programme',
  ],
  Spanish: [
    'De: Ada Lovelace <ada@shop.example>',
    'Enviado: lunes, 2 de febrero de 2026 10:04',
    'Para: Grace',
    'Asunto: Un programa',
  ],
  Italian: [
    'Da: Ada Lovelace <ada@shop.example>',
    'Inviato: lunedì 2 febbraio 2026 10:04',
    'A: Grace',
    'Oggetto: Un programma',
  ],
  Portuguese: [
    'De: Ada Lovelace <ada@shop.example>',
    'Enviada em: segunda-feira, 2 de fevereiro de 2026 10:04',
    'Para: Grace',
    'Assunto: Um programa',
  ],
};

const phones = [
  'Sent from my iPhone',
  'Sent from my Galaxy',
  'Sent from Yahoo Mail on Android',
  'Sent from Outlook for iOS',
  'Get Outlook for Android',
  'Von meinem iPhone gesendet',
  'Gesendet mit der GMX Mail App',
  'Envoyé de mon iPhone',
  "Envoyé depuis l'application Mail Orange",
  'Enviado desde mi iPhone',
  'Inviato da iPhone',
  'Enviado do meu iPhone',
  'Verzonden vanaf mijn iPhone',
];

const written = (text: string): string => readWritten({ text, html: '' }).text;

t.test('cuts what follows an attribution, in many languages', async (t) => {
  for (const [language, lines] of Object.entries(attributions))
    for (const line of lines) {
      t.equal(written(`${new_text}\n\n${line}\n\n${marked}\n`), new_text, `${language}: ${line}, quoted by >`);
      t.equal(written(`${line}\n${marked}\n\n${new_text}`), new_text, `${language}: ${line}, answered below`);
      if (!line.startsWith('Ada Lovelace <ada@shop.example> writes'))
        t.equal(written(`${new_text}\n\n${line}\n\n${plain}\n`), new_text, `${language}: ${line}, not marked`);
    }
  const styles = Object.values(attributions).flat().length + separators.length + Object.keys(headers).length;
  t.ok(styles >= 60, `${styles} styles of quotes`);
});

t.test('cuts what follows a separator or the header of a quoted mail', async (t) => {
  for (const line of separators) {
    t.equal(written(`${new_text}\n\n${line}\n${header(headers.English as string[])}`), new_text, line);
    t.equal(written(`${new_text}\n\n${line}\n\n${plain}`), new_text, `${line}, without a header`);
  }
  for (const [language, lines] of Object.entries(headers)) {
    t.equal(written(`${new_text}\n\n${header(lines)}`), new_text, language);
    t.equal(
      written(`${new_text}\n\n${lines.map((line) => `> ${line}`).join('\n')}\n>\n${marked}`),
      new_text,
      `${language}, quoted`,
    );
  }
});

t.test('cuts signatures, and keeps a closing with a name', async (t) => {
  for (const line of phones) {
    t.equal(written(`${new_text}\n\n${line}`), new_text, line);
    t.equal(
      written(`${new_text}\n\n${line}\n\n${attributions.en?.[0]}\n${marked}`),
      new_text,
      `${line}, above a quote`,
    );
  }
  for (const line of ['-- ', '--', '___________', '***', '—'])
    t.equal(written(`${new_text}\n\n${line}\nGrace Hopper\nhttps://blog.example`), new_text, `below ${line}`);
  const closed = `${new_text}\n\nKind regards,\nGrace`;
  t.equal(written(closed), closed);
  t.equal(readWritten({ text: closed, html: '' }).own_words, new_text, 'which says nothing of what is meant');
  t.equal(written(`${closed}\nHead of Content\n+1 202 555 0143\nhttps://blog.example`), closed, 'without contact data');
});

t.test('keeps what only looks like a quote or a signature', async (t) => {
  const kept = [
    'I said on Monday at 10:00 that we agree:\n\n- one\n- two',
    'From what I see, the rates are fine.\nTo be clear: we are in.',
    'See this:\n\n```\n# a comment\n----\n> code\n```\n\nDoes it work?',
    'We pay 10 % -- never more.',
    'Subject: to approval, yes.',
    '> would you like to join our program?\n\nYes, gladly.',
    'On the other hand, you wrote that it pays 20 %.',
    'Am Montag um 10:00 habe ich Zeit.',
    'Le 2 février à 10:00 me convient.',
  ];
  for (const text of kept) t.equal(written(text), text, text);
});

t.test('keeps answers that stand between quotes, with what they answer', async (t) => {
  const inline = '> would you like to join our program?\n\nYes.\n\n> Do you have an account?\n\nNot yet.';
  t.equal(written(`${attributions.en?.[0]}\n${inline}`), inline);
  t.equal(written(`See below.\n\n${attributions.de?.[0]}\n${inline}`), `See below.\n\n${inline}`);
  t.equal(
    readWritten({ text: `${attributions.en?.[0]}\n${inline}`, html: '' }).own_words,
    'Yes.\n\n\nNot yet.',
    'the answers alone are classified',
  );
  t.equal(
    written(`Hello Ada,\n\n${attributions.en?.[0]}\n${marked}\n\nYes, please send me the details.`),
    `Hello Ada,\n\n${marked}\n\nYes, please send me the details.`,
    'a sentence below the quote',
  );
  t.equal(
    written(`${new_text}\n\n${attributions.en?.[0]}\n${marked}\n\nGrace Hopper\nBlog`),
    new_text,
    'a name below the quote',
  );
});

t.test('reads HTML, and the containers of mail programs', async (t) => {
  const written_html = '<p>Sounds good.</p><p>Please send me the details.</p>';
  const quoted_html = '<p>Hello Grace,</p><p>would you like to join our program?</p>';
  const programs: Record<string, string> = {
    Gmail: `<div dir="ltr">${written_html}</div><br><div class="gmail_quote"><div dir="ltr" class="gmail_attr">On Mon, Feb 2, 2026 at 10:04 AM Ada &lt;<a href="mailto:ada@shop.example">ada@shop.example</a>&gt; wrote:<br></div><blockquote class="gmail_quote">${quoted_html}</blockquote></div>`,
    'Apple Mail': `<html><body>${written_html}<br><div><br><blockquote type="cite"><div>On 2 Feb 2026, at 10:04, Ada &lt;ada@shop.example&gt; wrote:</div><br>${quoted_html}</blockquote></div></body></html>`,
    'Outlook on the web': `<div>${written_html}</div><div id="appendonsend"></div><hr><div id="divRplyFwdMsg"><b>From:</b> Ada<br><b>Sent:</b> Monday<br><b>To:</b> Grace<br><b>Subject:</b> A program</div><div>${quoted_html}</div>`,
    'Outlook on Windows': `<div class="WordSection1"><p class="MsoNormal">Sounds good.</p><p class="MsoNormal">&nbsp;</p><p class="MsoNormal">Please send me the details.</p><div><div style="border:none;border-top:solid #E1E1E1 1.0pt;padding:3.0pt 0cm 0cm 0cm"><p class="MsoNormal"><b>From:</b> Ada<br><b>Sent:</b> Monday<br><b>Subject:</b> A program</p></div></div>${quoted_html}</div>`,
    'a quote that is a document of its own': `${written_html}<blockquote type="cite"><html><head><title>Hello</title></head><body>${quoted_html}</body></html></blockquote>`,
    Yahoo: `<div>${written_html}</div><div id="yahoo_quoted_1" class="yahoo_quoted"><div>On Monday, February 2, 2026 at 10:04:00 AM GMT, Ada &lt;ada@shop.example&gt; wrote:</div>${quoted_html}</div>`,
    Thunderbird: `${written_html}<div class="moz-cite-prefix">On 2/2/26 10:04, Ada wrote:<br></div><blockquote type="cite" cite="mid:x">${quoted_html}</blockquote>`,
    Proton: `<div>${written_html}</div><div class="protonmail_quote">On Monday, February 2nd, 2026 at 10:04, Ada &lt;ada@shop.example&gt; wrote:<br><blockquote class="protonmail_quote" type="cite">${quoted_html}</blockquote></div>`,
    'Gmail with a signature': `<div>${written_html}</div><div class="gmail_signature">Grace Hopper<br>Blog</div><div class="gmail_quote">On Mon, Feb 2, 2026 at 10:04 AM Ada &lt;ada@shop.example&gt; wrote:<br><blockquote>${quoted_html}</blockquote></div>`,
  };
  for (const [program, html] of Object.entries(programs))
    t.equal(readWritten({ text: '', html }).text, new_text, program);
  t.equal(readWritten({ text: new_text, html: '<p>Other</p>' }).text, new_text, 'the text goes before HTML');
});

t.test('reads no more of HTML than is worth reading', async (t) => {
  const tags = (html: string): number => html.split('<').length - 1;
  t.ok(tags(boundedHtml('<a>'.repeat(90_000))) <= 4_000, 'tags');
  t.equal(tags(boundedHtml('<blockquote>'.repeat(190) + '</blockquote>'.repeat(190))), 100, 'depth');
  t.equal(boundedHtml('word '.repeat(50_000)).length, 128 << 10, 'length');
  const styled = `<style>${'p { } '.repeat(60_000)}</STYLE ><!-- ${'<b>'.repeat(5_000)} --><p>Yes, please.</p>`;
  t.equal(boundedHtml(styled), '<p>Yes, please.</p>', 'styles and comments do not count');
  t.equal(readHtml(`${'<div>'.repeat(300)}<b>Yes</b>, please.${'</div>'.repeat(300)}`), 'Yes, please.');
  for (const broken of ['<', 'a <', '<!--', '<style', '</', '<a <b>c', '<style>x', '<!-- >', '<div'])
    t.ok(boundedHtml(broken).length <= broken.length, broken);
});
