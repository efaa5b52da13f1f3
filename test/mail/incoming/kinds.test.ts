/** Tries mails that people and their programs send in answer to an email, by kind. */
import t from 'tap';
import { classifyMail } from '../../../src/mail/incoming/classify.ts';
import { classifyReply } from '../../../src/recruitment/replies/classify.ts';
import { crlf, mail } from './mails.ts';

const context = { own_addresses: [], readMeaning: classifyReply, now: new Date('2026-02-03T10:00:00Z') };
type Fields = Record<string, string>;
type Case = [expected: string, text: string, fields?: Fields];

/** `auto_reply absence`, `reply positive`, `unsubscribe`; ` ?` behind it: a person should look. */
async function told(text: string, fields: Fields = {}): Promise<string> {
  const classified = await classifyMail(crlf(mail(fields, text)), context);
  const detail = classified.auto_reply_kind ?? classified.reply_kind;
  return [classified.kind, ...(detail ? [detail] : []), ...(classified.needs_review ? ['?'] : [])].join(' ');
}

const auto = (subject: string): Fields => ({ Subject: subject, 'Auto-Submitted': 'auto-replied' });
const calendar = (method: string): Fields => ({ 'Content-Type': `text/calendar; method=${method}; charset=utf-8` });
const event = (method: string): string =>
  `BEGIN:VCALENDAR\nVERSION:2.0\nMETHOD:${method}\nBEGIN:VEVENT\nSUMMARY:Call\nEND:VEVENT\nEND:VCALENDAR`;
const desk = { 'Auto-Submitted': 'auto-generated', 'X-Auto-Response-Suppress': 'All' };

const table: Record<string, Case[]> = {
  'notes of absence': [
    ['auto_reply absence', 'I am out of the office until 12 March.', auto('Automatic reply: Our program')],
    [
      'auto_reply absence',
      'I am on parental leave until September with limited access to email. Please contact Bob at bob@blog.example.',
    ],
    [
      'auto_reply absence',
      'Ich bin bis zum 12. März nicht im Büro. In dringenden Fällen wenden Sie sich an Frau Meier.',
      { Subject: 'Abwesenheitsnotiz: Programm' },
    ],
    [
      'auto_reply absence',
      "Je suis absente jusqu'au 12 mars. En cas d'urgence, contactez Paul.",
      auto('Réponse automatique : Programme'),
    ],
    ['auto_reply absence', 'Estoy de vacaciones hasta el 12 de marzo.', auto('Respuesta automática: Programa')],
    ['auto_reply absence', 'Sono in ferie fino al 12 marzo.', auto('Risposta automatica: Programma')],
    ['auto_reply absence', 'Estou de férias até 12 de março.', auto('Resposta automática: Programa')],
    ['auto_reply other', '現在休暇中です。3月12日に戻ります。', auto('自動返信: Program')],
    ['auto_reply other', 'Я в отпуске до 12 марта.', auto('Автоответ: Program')],
  ],
  'receipts and tickets': [
    [
      'auto_reply receipt',
      'Your request (12345) has been received and is being reviewed by our support staff.\n\nTo add additional comments, reply to this email.',
      { Subject: '[Request received] Our program', ...desk },
    ],
    [
      'auto_reply receipt',
      'Hi,\n\nThank you for contacting us. We have received your message and will get back to you within 24 hours.\n\nTicket ID: #4711',
    ],
    [
      'auto_reply receipt',
      'Vielen Dank für Ihre Anfrage. Ihre Anfrage wurde unter der Vorgangsnummer 4711 erfasst. Dies ist eine automatisch erstellte Nachricht.',
    ],
    [
      'auto_reply receipt',
      'Nous avons bien reçu votre demande. Ceci est un message automatique, merci de ne pas y répondre.',
    ],
    [
      'auto_reply receipt',
      'Hemos recibido su solicitud. Este es un mensaje automático, por favor no responda a este correo.',
    ],
    [
      'auto_reply receipt',
      'Abbiamo ricevuto la sua richiesta. Questo è un messaggio automatico, si prega di non rispondere a questa email.',
    ],
    [
      'auto_reply receipt',
      'Recebemos a sua mensagem. Esta é uma mensagem automática, por favor não responda a este e-mail.',
    ],
  ],
  'answers of people by a help desk': [
    [
      'reply positive',
      '##- Please type your reply above this line -##\n\nGrace (Blog)\n\nFeb 3, 2026, 09:12\n\nHello Ada,\n\nyes, we want to join. Please send me the details.\n\nGrace',
      desk,
    ],
    [
      'reply positive',
      '## In replies all text above this line is added to the ticket ##\n\nHello Ada,\n\nyes, we would love to join. Please send me the link.\n\nGrace',
      { 'X-Auto-Response-Suppress': 'All' },
    ],
    [
      'reply positive ?',
      'Hello Ada,\n\nyes, we would love to join. Please send me the link.\n\nGrace\n\n--\nTicket: https://blog.freshdesk.example/helpdesk/tickets/17',
      {
        'Auto-Submitted': 'auto-generated',
        'X-Freshdesk': 'yes',
        'X-Auto-Response-Suppress': 'DR, RN, OOF, AutoReply',
      },
    ],
    [
      'reply positive',
      '-- Please reply above this line --\n\nGrace replied:\n\nYes, sounds great. How do we sign up?',
      desk,
    ],
    [
      'reply positive',
      '--- Reply above this line to comment ---\n\nSounds great, we are in! Please send the contract.\n\nGrace from Blog',
    ],
    [
      'reply positive',
      '[Bitte oberhalb dieser Zeile antworten]\n\nHallo Ada,\n\nja, gerne! Bitte schicken Sie uns den Vertrag.\n\nGrace',
      desk,
    ],
    [
      'reply positive',
      '##- Veuillez saisir votre réponse au-dessus de cette ligne -##\n\nBonjour,\n\noui, avec plaisir ! Envoyez-moi le contrat.\n\nGrace',
      desk,
    ],
    [
      'reply positive',
      '##- Por favor, escriba su respuesta por encima de esta línea -##\n\nHola Ada:\n\nSí, nos interesa mucho. Mándenos el contrato.\n\nGrace',
      desk,
    ],
    [
      'reply positive',
      '##- Si prega di digitare la risposta sopra questa riga -##\n\nCiao Ada,\n\nsì, volentieri! Mandateci il contratto.\n\nGrace',
      desk,
    ],
    [
      'reply positive',
      '##- Por favor, digite sua resposta acima desta linha -##\n\nOlá Ada,\n\nsim, temos muito interesse. Mandem o contrato.\n\nGrace',
      desk,
    ],
    [
      'reply negative',
      '##- Please type your reply above this line -##\n\nYour request (#17) has been updated. To add additional comments, reply to this email.\n\nGrace (Blog)\n\nFeb 3, 2026, 09:12\n\nNo, thank you. We are not interested.',
      desk,
    ],
    [
      'reply positive',
      'Yes, we would love to join. Please send me the details.\n\nGrace\nPowered by Intercom',
      { 'X-Intercom-Bin': 'x' },
    ],
    [
      'reply positive',
      'Yes, we would love to join. Please send me the details.\n\nThis email is a service from Blog. Delivered by Zendesk',
      {},
    ],
  ],
  'requests to prove oneself': [
    [
      'auto_reply challenge',
      'Your message is on a waitlist. Please add yourself to my guest list so that it gets to my inbox. Use the link below.',
    ],
    [
      'auto_reply challenge',
      'Please confirm that you are a real person: https://verify.example/x. Until then your email is being held.',
    ],
    [
      'auto_reply challenge',
      'Mon adresse est protégée par un filtre. Confirmez que vous êtes une personne en cliquant sur le lien : https://verif.example/x',
    ],
    [
      'auto_reply challenge',
      'Ihre Nachricht wird zurückgehalten. Bitte bestätigen Sie über den Link, dass Sie ein Mensch sind: https://verif.example/x',
    ],
    [
      'auto_reply challenge',
      'Su mensaje está retenido. Confirme que usted es una persona: haga clic en https://verif.example/x',
    ],
    [
      'auto_reply challenge',
      'Il suo messaggio è in attesa. Confermi di essere una persona: clicchi su https://verif.example/x',
    ],
    [
      'auto_reply challenge',
      'A sua mensagem está retida. Confirme que é uma pessoa: clique em https://verif.example/x',
    ],
  ],
  'invitations and reactions': [
    ['auto_reply invitation ?', event('REQUEST'), calendar('REQUEST')],
    ['auto_reply invitation ?', event('COUNTER'), calendar('COUNTER')],
    ['auto_reply invitation', event('REPLY'), { ...calendar('REPLY'), Subject: 'Accepted: Call' }],
    ['auto_reply invitation', event('CANCEL'), { ...calendar('CANCEL'), Subject: 'Canceled: Call' }],
    ['auto_reply reaction ?', '👍 Grace reacted via Gmail'],
    ['auto_reply reaction ?', 'Grace Hopper reacted to your message:\n\n❤️'],
    ['auto_reply reaction ?', 'Liked “Would you like to join our program?”'],
    ['auto_reply reaction', 'Disliked “Would you like to join our program?”'],
    ['auto_reply reaction ?', 'Grace a réagi via Gmail 👍'],
    ['auto_reply reaction ?', 'Grace hat über Gmail reagiert 👍'],
  ],
  'notices of lists and servers': [
    [
      'auto_reply other',
      "Your mail to 'partners' with the subject\n\n    Our program\n\nIs being held until the list moderator can review it for approval.\n\nThe reason it is being held:\n\n    Post by non-member to a members-only list",
      { Subject: 'Your message to partners awaits moderator approval' },
    ],
    [
      'auto_reply other',
      'Hello,\n\nYour message to the group partners is awaiting moderation. You will be notified when it is approved.',
      { Subject: 'Message pending approval' },
    ],
    ['auto_reply other', 'This mailbox is no longer monitored. Please use the contact form on our website.'],
    [
      'auto_reply other',
      'My email address has changed. This is an automated message. Please use grace@new.example from now on.',
    ],
    [
      'auto_reply other ?',
      'You have received a secure message from Grace. Click here to sign in and read the message.',
      {},
    ],
    [
      'auto_reply other ?',
      'Sie haben eine verschlüsselte Nachricht erhalten. Bitte melden Sie sich im Portal an, um sie zu lesen: Link',
      {},
    ],
  ],
  'what goes to many': [
    [
      'auto_reply other ?',
      'Thanks for signing up! Use code WELCOME10. You can unsubscribe at any time.',
      { 'List-Unsubscribe': '<https://news.example/u>', 'Feedback-ID': '1:x:news' },
    ],
    [
      'auto_reply other ?',
      'Your request to the Team mailing list\n\n    Posting of your message\n\nhas been rejected by the list moderator.',
      { Subject: 'Request to mailing list Team rejected', Precedence: 'bulk', 'List-Id': '<team.lists.example>' },
    ],
    ['auto_reply other ?', 'Yes, we would love to join.', { 'List-Id': '<team.lists.example>' }],
    ['auto_reply other ?', 'Please remove me from your list.', { 'Return-Path': '<>' }],
    ['reply wrong_person ?', 'Grace has left the company. Please contact Bob Martin.', { 'Return-Path': '<>' }],
    [
      'reply positive',
      '##- Please type your reply above this line -##\n\nGrace (Blog)\n\nFeb 3, 2026, 09:12\n\nHello Ada,\n\nyes, we want to join. Please send me the details.\n\nGrace',
      { ...desk, Precedence: 'bulk', 'Feedback-ID': '1:x:desk' },
    ],
    ['reply positive ?', 'Yes, we would love to join. Please send me the link.', { 'Feedback-ID': '1:x:desk' }],
    ['reply positive ?', 'Yes, we would love to join.', { 'X-Auto-Response-Suppress': 'DR, OOF, AutoReply' }],
  ],
  'receipts of reading and recalls': [
    [
      'auto_reply receipt',
      'Your message\n\n   To: Grace\n   Subject: Our program\n   Sent: 3 February 2026 09:12\n\nwas read on 3 February 2026 10:00.',
      { Subject: 'Read: Our program' },
    ],
    ['auto_reply receipt', '', { Subject: 'Gelesen: Unser Programm' }],
    ['auto_reply receipt', 'Votre message à Grace a été lu le 3 février 2026.', { Subject: 'Lu : Programme' }],
    ['auto_reply receipt', '', { Subject: 'Leído: Programa' }],
    ['auto_reply receipt', '', { Subject: 'Przeczytano: Program' }],
    [
      'auto_reply receipt',
      'This is a Return Receipt for the mail that you sent to grace@blog.example.\n\nNote: This Return Receipt only acknowledges that the message was displayed.',
      { Subject: 'Return Receipt (displayed) - Our program' },
    ],
    ['auto_reply other', 'Bob would like to recall the message, "Our program".', { Subject: 'Recall: Our program' }],
    ['reply positive', 'Yes, we would love to join.', { Subject: 'Re: Read: Our program' }],
  ],
  'what only its words give away': [
    [
      'auto_reply invitation ?',
      'Hi Ada,\n\nA new event has been scheduled.\n\nEvent Type:\n30 Minute Meeting\n\nInvitee:\nGrace',
    ],
    ['reply ?', 'How would you rate the support you received?\n\nGood, I am satisfied\nBad, I am not satisfied'],
    ['reply ?', 'Your ticket 88 has been closed.'],
    ['unsubscribe ?', 'To confirm that you want to be added to this mailing list, click the link below.'],
    ['reply ?', 'SpamCop reports: this message was reported as spam.'],
    [
      'auto_reply other ?',
      'If you are not the intended recipient, please delete this message and remove it from your system. The contents are confidential.',
    ],
    ['auto_reply other ?', 'This e-mail is confidential and intended for the addressee.'],
  ],
  'notes of absence in other languages': [
    ['auto_reply absence', 'Jestem na urlopie do 4 grudnia.', { Subject: 'Nieobecność: Program' }],
    ['auto_reply other', 'December 4-ig nem vagyok elérhető.', { Subject: 'Automatikus válasz: Program' }],
    ['auto_reply absence', '', { Subject: 'Szabadságon vagyok' }],
    ['auto_reply absence', '', { Subject: 'Ikke på kontoret' }],
  ],
  'somebody who has left or moved': [
    ['reply wrong_person', 'Grace has left the company. Please contact Bob Martin (bob@blog.example) instead.'],
    ['reply wrong_person', 'Ich arbeite nicht mehr bei diesem Verlag. Bitte wenden Sie sich an Frau Schuster.'],
    ['reply wrong_person', 'Je ne travaille plus ici, adressez-vous à ma collègue Julie Martin.'],
  ],
  'one word': [
    ['reply positive', 'yes'],
    ['reply positive', 'ok'],
    ['reply positive', '👍'],
    ['reply positive', 'Oui'],
    ['reply positive', 'sí'],
    ['reply positive', 'Sim!'],
    ['reply negative', 'no'],
    ['reply negative', 'Nein.'],
    ['reply negative', 'não'],
    ['unsubscribe', 'stop'],
    ['unsubscribe', 'STOP'],
    ['unsubscribe', 'Unsubscribe'],
    ['reply question', '?'],
    ['reply question ?', 'да'],
    ['reply question ?', 'はい'],
    ['reply question ?', 'evet'],
  ],
  'nothing new': [
    ['reply ?', ''],
    ['reply ?', 'On Mon, Feb 2, 2026 at 10:04 AM Ada <ada@shop.example> wrote:\n> Would you join?'],
    ['reply ?', 'Sent from my iPhone'],
    ['reply ?', '--\nGrace Hopper\nBlog\n+1 202 555 0143'],
    ['reply ?', 'Grace\n\nSent from my iPhone'],
    ['reply ?', 'Best regards,\nGrace Hopper'],
  ],
  'an answer above what programs append': [
    [
      'reply positive',
      'Yes please, send the link.\n\nYou get this message because you are a member of the group "partners".\nTo unsubscribe and get no more of its emails, write to partners+unsubscribe@blog.example.',
    ],
    ['reply positive', 'Sounds great, how do I sign up?\n\nSent from my iPhone'],
    ['reply positive', 'Sounds great, how do I sign up?\n\nBest regards,\nGrace'],
    ['unsubscribe', 'Please take me off your list.\n\nThis e-mail is confidential and intended for the addressee.'],
  ],
};

for (const [kind, cases] of Object.entries(table))
  t.test(kind, async (t) => {
    for (const [expected, text, fields] of cases) {
      const answer = await told(text, fields);
      // Under review it makes no difference what kind of reply is guessed.
      t.equal(
        expected === 'reply ?' ? answer.replace(/^(?:unsubscribe|reply \w+) \?$/, 'reply ?') : answer,
        expected,
        text.slice(0, 80),
      );
    }
  });

t.test('a receipt of reading', async (t) => {
  const part = (type: string, text: string): string => `--b\nContent-Type: ${type}\n\n${text}\n`;
  const read = mail(
    { 'Content-Type': 'multipart/report; report-type=disposition-notification; boundary="b"' },
    `${part('text/plain', 'Your message was read on Tuesday.')}${part('message/disposition-notification', 'Final-Recipient: rfc822; grace@blog.example\nDisposition: manual-action; displayed')}--b--`,
  );
  t.match(await classifyMail(crlf(read), context), { kind: 'auto_reply', auto_reply_kind: 'receipt' });
});
