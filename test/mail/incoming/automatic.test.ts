import t from 'tap';
import { readAutoReply } from '../../../src/mail/incoming/automatic/auto_reply.ts';
import { readReturnDate } from '../../../src/mail/incoming/automatic/return_date.ts';
import { plainMessage, readMessage } from '../../../src/mail/incoming/message/message.ts';
import { crlf, mail } from './mails.ts';

const byWords = (subject: string, text: string): boolean =>
  readAutoReply(plainMessage({ subject, text }), text) !== null;
const byMail = async (fields: Record<string, string>, text = 'Thank you.'): Promise<boolean> => {
  const message = await readMessage(crlf(mail(fields, text)));
  return readAutoReply(message, message.text) !== null;
};

t.test('knows automatic replies by their fields', async (t) => {
  const fields: Record<string, string>[] = [
    { 'Auto-Submitted': 'auto-replied' },
    { 'Auto-Submitted': 'auto-generated', 'Return-Path': '<>' },
    { 'X-Autoreply': 'yes' },
    { 'X-Autorespond': 'Re: A program' },
    { 'X-Auto-Reply-From': 'grace@blog.example' },
    { Precedence: 'auto_reply' },
    { 'X-POST-MessageClass': '9; Autoresponder' },
    { 'X-Auto-Response-Suppress': 'All', 'X-MS-Exchange-Inbox-Rules-Loop': 'grace@blog.example' },
    { 'Return-Path': '<>', Precedence: 'bulk' },
    // Headers for which a person looks whether somebody wrote the mail all the same.
    { 'Return-Path': '<>' },
    { Precedence: 'bulk' },
    { Precedence: 'list' },
    { 'List-Unsubscribe': '<https://news.example/u>' },
    { 'List-Id': 'Team <team.lists.example>' },
  ];
  for (const one of fields) t.ok(await byMail(one), JSON.stringify(one));
  const others: Record<string, string>[] = [
    {},
    { 'Auto-Submitted': 'no' },
    { 'X-Auto-Response-Suppress': 'DR, OOF, AutoReply' },
    { 'X-Autoreply': 'no' },
    { 'Feedback-ID': '1.eu-west-1.x:AmazonSES' },
    { Precedence: 'normal' },
  ];
  for (const one of others) t.notOk(await byMail(one), JSON.stringify(one));
});

t.test('knows them by their words, in six languages', async (t) => {
  const replies: [subject: string, text: string][] = [
    ['Automatic reply: A program', 'I am out of the office.'],
    ['Out of Office: A program', 'Back soon.'],
    [
      'Re: A program',
      'I am currently on annual leave with limited access to e-mail. For urgent matters please contact Bob at +1 202 555 0143. I will reply upon my return.',
    ],
    ['Re: A program', 'This is an automated response. This mailbox is not monitored.'],
    [
      '[Ticket 4711] A program',
      'Your request has been received and will be reviewed by our team. Please do not reply to this email.',
    ],
    ['Abwesenheitsnotiz: Ein Programm', 'Ich bin im Urlaub.'],
    [
      'AW: Ein Programm',
      'Ich bin bis zum 12. März nicht im Büro und habe keinen Zugriff auf meine E-Mails. In dringenden Fällen wenden Sie sich bitte an Frau Meier.',
    ],
    [
      'Ihre Anfrage',
      'Vielen Dank für Ihre Nachricht. Diese E-Mail wurde automatisch erstellt, bitte antworten Sie nicht auf diese E-Mail.',
    ],
    ['Réponse automatique : Un programme', 'Je suis absente.'],
    [
      'RE: Un programme',
      "Je suis en congé jusqu'au 12 mars, sans accès à ma messagerie. En mon absence, contactez Paul. Je vous répondrai à mon retour.",
    ],
    [
      'Votre message',
      'Nous avons bien reçu votre demande. Ceci est un message automatique, merci de ne pas répondre à ce message.',
    ],
    ['Respuesta automática: Un programa', 'Estoy de vacaciones.'],
    [
      'RE: Un programa',
      'Estoy fuera de la oficina hasta el 12 de marzo, con acceso limitado al correo. Para temas urgentes, diríjase a Pablo. Responderé a mi regreso.',
    ],
    ['Su consulta', 'Hemos recibido su solicitud. Este es un mensaje automático, por favor no responda a este correo.'],
    ['Risposta automatica: Un programma', 'Sono in ferie.'],
    [
      'R: Un programma',
      'Sono assente fino al 12 marzo, con accesso limitato alla posta. Per urgenze contattare Paola. Risponderò al mio rientro.',
    ],
    [
      'La sua richiesta',
      'Abbiamo ricevuto la sua richiesta. Questo è un messaggio automatico, si prega di non rispondere a questa email.',
    ],
    ['Resposta automática: Um programa', 'Estou de férias.'],
    [
      'RE: Um programa',
      'Estou ausente do escritório até 12 de março, sem acesso ao e-mail. Em caso de urgência, contactar o Paulo. Responderei no meu regresso.',
    ],
    ['O seu pedido', 'Recebemos a sua mensagem. Esta é uma mensagem automática, por favor não responda a este e-mail.'],
  ];
  for (const [subject, text] of replies) t.ok(byWords(subject, text), `${subject} | ${text}`);
});

t.test('takes no person for a program', async (t) => {
  const people: [subject: string, text: string][] = [
    ['Re: A program', "I'm out of the office until Monday, but this sounds good. Can you send me the details?"],
    ['Re: A program', "I'm on vacation right now, let's talk in March."],
    ['Re: Automatic reply: A program', 'I am back and would love to join.'],
    ['Re: A program', 'Thank you for contacting me. I am interested, how much do you pay?'],
    ['Re: A program', 'Is this an automated message? Please stop.'],
    ['AW: Programm', 'Ich bin gerade im Urlaub, meldet euch bitte im März noch einmal.'],
    ['RE: Programme', "Je suis en vacances, mais votre offre m'intéresse."],
    ['RE: Programa', 'Estoy de viaje, ¿me escribes la semana que viene?'],
    ['R: Programma', 'Ora sono in ferie, ci sentiamo a settembre?'],
    ['RE: Programa', 'Estou de férias, falamos em setembro.'],
    ['Re: A program', 'We received your product last week. The team will be in touch if we like it.'],
    ['Re: A program', 'Bob has left the company. Please write to carol@blog.example.'],
    ['Automatic reply: A program', 'Bob no longer works here. Please write to carol@blog.example.'],
  ];
  for (const [subject, text] of people) t.notOk(byWords(subject, text), `${subject} | ${text}`);
});

t.test('reads the day that somebody is back', async (t) => {
  const sent = new Date('2026-02-03T10:00:00Z'); // a Tuesday
  const days: [text: string, expected: string | null][] = [
    ['I will be back on 12 March 2026.', '2026-03-12'],
    ['I will return on March 12th.', '2026-03-12'],
    ['I am away until Friday, March 13.', '2026-03-13'],
    ['Out from 10 February to 20 February, back in the office on 23 February.', '2026-02-23'],
    ['On leave 2/10 - 2/20. Back Monday 2/23.', '2026-02-23'],
    ['I am out until 2026-03-12.', '2026-03-12'],
    ['Back on Monday.', '2026-02-09'],
    ['I will return in April.', '2026-04-01'],
    ['We reopen on 7 January.', null],
    ['Ich bin bis einschließlich 20.02.2026 nicht im Büro.', '2026-02-20'],
    ['Ich bin vom 10.02. bis 20.02. im Urlaub.', '2026-02-20'],
    ['Ab dem 3. März bin ich wieder erreichbar, zurück am 4. März.', '2026-03-04'],
    ['Am Montag, den 9. Februar bin ich abwesend bis 12. Februar.', '2026-02-12'],
    ['Je suis absente jusqu’au 12 mars inclus.', '2026-03-12'],
    ['Je serai de retour le 1er avril 2026.', '2026-04-01'],
    ['De retour lundi.', '2026-02-09'],
    ['Estaré fuera hasta el 12 de marzo de 2026.', '2026-03-12'],
    ['Regreso el 9 de febrero.', '2026-02-09'],
    ['Estoy de vacaciones del 10 al 20 de febrero.', '2026-02-20'],
    ['Sarò assente fino al 12 marzo compreso.', '2026-03-12'],
    ['Rientrerò il 9 febbraio 2026.', '2026-02-09'],
    ['Estarei ausente até 12 de março.', '2026-03-12'],
    ['Regresso a 9 de fevereiro.', '2026-02-09'],
    ['Voltarei no dia 9/2/2026.', '2026-02-09'],
    ['I am away. Please call +1 202 555 0143.', null],
    ['Our office is at 12 March Street, open since 1998.', null],
    ['I was away until 12 March 2019.', null],
    ['I am back on 31 February.', null],
  ];
  for (const [text, expected] of days) t.equal(readReturnDate(text, sent), expected, text);
  t.equal(readReturnDate('We reopen on 7 January.', new Date('2026-12-20T10:00:00Z')), '2027-01-07', 'next year');
});
