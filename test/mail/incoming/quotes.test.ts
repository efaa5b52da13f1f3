/** Quotes as mail programs of many languages write them. */
import t from 'tap';
import { readWritten } from '../../../src/mail/incoming/writing/written_text.ts';

const said = 'Sounds good.\n\nPlease send me the details.';
const old = 'Hello Grace,\n\nwould you like to join our program?\nAda';
const marked = old.replace(/^/gm, '> ');

const attributions = [
  '11:04 AM, February 2, 2026, "Ada - Shop" <ada@shop.example>:',
  '2026/2/2 Ada Lovelace <ada@shop.example>',
  'ma 2. helmikuuta 2026 klo 10.04 Ada Lovelace\n<ada@shop.example> kirjoitti:',
  'po 2. 2. 2026 v 10:04 odesílatel Ada Lovelace <ada@shop.example> napsal:',
  'pon., 2 lut 2026 o 10:04 Ada Lovelace <ada@shop.example> napisał(a):',
  'Ada Lovelace <ada@shop.example> ezt írta (időpont: 2026. febr. 2., H, 10:04):',
  'În lun., 2 feb. 2026 la 10:04, Ada Lovelace <ada@shop.example> a scris:',
  'Ada Lovelace <ada@shop.example>, 2 Şub 2026 Pzt, 10:04 tarihinde şunu yazdı:',
  'Στις Δευ, 2 Φεβ 2026 στις 10:04 π.μ., ο χρήστης Ada <ada@shop.example> έγραψε:',
  'пн, 2 февр. 2026 г. в 10:04, Ada Lovelace <ada@shop.example>:',
  'пн, 2 лют. 2026 р. о 10:04 Ada Lovelace <ada@shop.example> пише:',
  'Den mån 2 feb. 2026 kl 10:04 skrev Ada Lovelace\n<ada@shop.example>:',
  'man. 2. feb. 2026 kl. 10:04 skrev Ada Lovelace <ada@shop.example>:',
  '2026년 2월 2일 (월) 오전 10:04, Ada <ada@shop.example>님이 작성:',
  '2026年2月2日(月) 10:04 Ada <ada@shop.example>:',
  'Ada <ada@shop.example> 于2026年2月2日周一 10:04写道：',
  'Pada Sen, 2 Feb 2026 pukul 10.04 Ada <ada@shop.example> menulis:',
  'Vào Th 2, 2 thg 2, 2026 vào lúc 10:04 Ada <ada@shop.example> đã viết:',
  'El dl., 2 de febr. 2026, 10:04, Ada <ada@shop.example> va escriure:',
  'On Feb 2, 2026, at 10:04 AM, Ada Lovelace <ada@shop.example> wrote:',
  'On Monday, February 2nd, 2026 at 10:04 AM, Ada <ada@shop.example> wrote:',
  'On Feb 2, 2026, 10:04 AM +0100, Ada <ada@shop.example>, wrote:',
  'On Mon, Feb 02, 2026 at 10:04 AM, Ada < ada@shop.example > wrote:',
  'Gesendet: Montag, 02. Februar 2026 um 10:04 Uhr\nVon: "Ada" <ada@shop.example>\nAn: grace@blog.example\nBetreff: Programm',
];

const headers = [
  ['Fra', 'Sendt', 'Til', 'Emne'],
  ['Från', 'Skickat', 'Till', 'Ämne'],
  ['Van', 'Verzonden', 'Aan', 'Onderwerp'],
  ['Lähettäjä', 'Lähetetty', 'Vastaanottaja', 'Aihe'],
  ['Od', 'Wysłano', 'Do', 'Temat'],
  ['Od', 'Odesláno', 'Komu', 'Předmět'],
  ['Od', 'Odoslané', 'Komu', 'Predmet'],
  ['Feladó', 'Elküldve', 'Címzett', 'Tárgy'],
  ['De la', 'Trimis', 'Către', 'Subiect'],
  ['Kimden', 'Gönderildi', 'Kime', 'Konu'],
  ['Από', 'Στάλθηκε', 'Προς', 'Θέμα'],
  ['От', 'Отправлено', 'Кому', 'Тема'],
  ['Від', 'Надіслано', 'Кому', 'Тема'],
  ['差出人', '送信日時', '宛先', '件名'],
  ['보낸 사람', '보낸 날짜', '받는 사람', '제목'],
  ['发件人', '发送时间', '收件人', '主题'],
  ['מאת', 'נשלח', 'אל', 'נושא'],
  ['من', 'تم الإرسال', 'إلى', 'الموضوع'],
];
const header = ([from, sent, to, subject]: string[]): string =>
  `${from}: Ada <ada@shop.example>\n${sent}: 2.2.2026 10:04\n${to}: Grace\n${subject}: Program`;

const separators = [
  'Oprindelig meddelelse',
  'Oprindelig besked',
  'Opprinnelig melding',
  'Ursprungligt meddelande',
  'Alkuperäinen viesti',
  'Wiadomość oryginalna',
  'Původní zpráva',
  'Eredeti üzenet',
  'Mesaj original',
  'Orijinal ileti',
  'Αρχικό μήνυμα',
  'Исходное сообщение',
  '원본 메일',
  'הודעה מקורית',
];

const containers = [
  '<div class="gmail_quote"><div class="gmail_attr">On Mon, Feb 2, 2026 at 10:04 AM Ada wrote:</div><blockquote class="gmail_quote">Hello</blockquote></div>',
  '<div id="appendonsend"></div><hr><div id="divRplyFwdMsg"><b>From:</b> Ada<br><b>Sent:</b> Monday<br><b>Subject:</b> Program</div><div>Hello</div>',
  '<div class="yahoo_quoted"><div>On Monday, Ada wrote:</div><div>Hello</div></div>',
  '<div class="moz-cite-prefix">On 02/02/2026 10:04, Ada wrote:<br></div><blockquote type="cite">Hello</blockquote>',
  '<div class="protonmail_quote">On Monday, Ada wrote:<br><blockquote class="protonmail_quote">Hello</blockquote></div>',
  '<div name="messageReplySection">On Feb 2, 2026, Ada wrote:<br><blockquote type="cite">Hello</blockquote></div>',
  '<blockquote type="cite">Hello</blockquote>',
  // Without a line that says who wrote it, or with one in any language.
  '<div class="gmail_quote">Hello <a href="https://x.example">Unsubscribe</a></div>',
  '<div class="gmail_quote gmail_quote_container"><div class="gmail_attr">Ada, ma 2.2. klo 10.04:</div><blockquote class="gmail_quote">Hello</blockquote></div>',
  '<div class="moz-cite-prefix">Ada napisao je:<br></div><blockquote type="cite">Hello</blockquote>',
  ...['class="yahoo_quoted"', 'class="protonmail_quote"', 'class="zmail_extra"', 'id="divRplyFwdMsg"'].map(
    (sign) => `<div ${sign}>Hello</div>`,
  ),
  '<div id="appendonsend"></div><div>Hello</div>',
];

const written = (text: string): string => readWritten({ text, html: '' }).text;

t.test('cuts below an attribution, marked or not', async (t) => {
  for (const line of attributions)
    for (const quote of line.startsWith('2026/') ? [marked] : [marked, old])
      t.equal(written(`${said}\n\n${line}\n${quote === old ? '\n' : ''}${quote}`), said, line);
});

t.test('cuts below a header, a line or a container', async (t) => {
  for (const names of headers) {
    t.equal(written(`${said}\n\n${header(names)}\n\n${old}`), said, names.join());
    t.equal(written(`${said}\n\n-----Xyz xyz-----\n${header(names)}\n\n${old}`), said, `${names.join()} below words`);
  }
  for (const words of separators) t.equal(written(`${said}\n\n-----${words}-----\n\n${old}`), said, words);
  for (const html of containers) t.equal(readWritten({ text: '', html: `<div>Yes.</div>${html}` }).text, 'Yes.', html);
  const between =
    '<div class="gmail_quote"><div class="gmail_attr">Ada:</div><blockquote>Join?</blockquote><div>Yes.</div><blockquote>Who pays?</blockquote><div>You do.</div></div>';
  const answers = readWritten({ text: '', html: `<div>See below.</div>${between}` }).text;
  t.ok(answers.includes('You do.'), 'answers between stay');
});

t.test('cuts a quote that a program broke, and one that begins on the line of the answer', async (t) => {
  const long = `> ${'would you like to join our program for people who write of bicycles'} and`;
  t.equal(written(`Yes.\n\nOn Mon, 2 Feb 2026 at 10:04, Ada wrote:\n${long}\nof trains\n> and ships?`), 'Yes.');
  t.equal(written('Yes. On Mon, Feb 2, 2026 at 10:04 AM, Ada <ada@shop.example> wrote:\n> Hello'), 'Yes.');
  const between = '> Would you join?\nYes.\n> Who pays?\nYou do.';
  t.equal(written(`On Mon, 2 Feb 2026 at 10:04, Ada wrote:\n${between}`), between, 'answers between stay');
});
