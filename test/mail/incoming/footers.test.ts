import t from 'tap';
import { readWritten } from '../../../src/mail/incoming/writing/written_text.ts';

const written = (text: string): string => readWritten({ text, html: '' }).text;
const yes = 'Sounds great, how do I sign up?\n\nGrace';

t.test('cuts what lists, companies and scanners append', async (t) => {
  const footers = [
    'Writer Blog, 1 Main Street, Lyon\nUnsubscribe from all future emails',
    'Unsubscribe | Manage preferences | View in browser',
    'Unsubscribe: https://news.example/u/1',
    'Unsubscribe\nhttps://news.example/u/1',
    'Unsubscribe\nPrivacy policy',
    'Abmelden\n\nhttps://news.example/ab',
    'You received this message because you are subscribed to the Google Groups "partners" group.\nTo unsubscribe from this group and stop receiving emails from it, send an email to partners+unsubscribe@lists.example.',
    'You are receiving this email because you signed up on our website.',
    'To stop receiving these emails, click here.',
    'If you no longer wish to receive our newsletter, you can unsubscribe at any time.',
    'This email was sent to grace@blog.example by Blog Ltd, 12 High Street, Leeds.',
    '_______________________________________________\nPartners mailing list\nPartners@lists.example\nhttps://lists.example/listinfo/partners',
    'CONFIDENTIALITY NOTICE: this email and any attachments are confidential and intended solely for the addressee.',
    'This e-mail and any files transmitted with it are confidential.\nIf you are not the intended recipient, delete it.',
    'DISCLAIMER\nThe sender accepts no liability.',
    'Please consider the environment before printing this email.',
    'Virus-free. www.scanner.example',
    'Registered in England and Wales, company number 1234567.',
    'Sie erhalten diese E-Mail, weil Sie sich angemeldet haben.',
    'Wenn Sie keine weiteren E-Mails mehr erhalten möchten, klicken Sie bitte hier.',
    'Newsletter abbestellen: https://news.example/ab',
    'Diese E-Mail enthält vertrauliche Informationen und ist nur für den Empfänger bestimmt.',
    'Blog GmbH, Hauptstr. 1, 10115 Berlin\nGeschäftsführer: Max Beispiel\nAmtsgericht Berlin HRB 12345',
    'Vous recevez ce message car vous êtes inscrit à notre lettre.',
    'Pour vous désabonner, cliquez ici.',
    'Ce message et ses pièces jointes sont confidentiels et destinés à la seule personne nommée.',
    'Recibes este correo porque te suscribiste.',
    'Si no desea recibir más correos, haga clic aquí.',
    'Este mensaje es confidencial y va dirigido a su destinatario.',
    "Hai ricevuto questa email perché sei iscritto.\nPer annullare l'iscrizione clicca qui.",
    'Questo messaggio è riservato al destinatario.',
    'Recebeu este e-mail porque se inscreveu.\nPara deixar de receber, clique aqui.',
    'Esta mensagem é confidencial e destina-se apenas ao destinatário.',
    'If you received this in error please notify the sender and delete this email immediately.',
    'Under GDPR, if you would rather get no emails, reply NO.',
    'Reply STOP to opt out.',
    "Don't want these emails?\nLet us know.",
    'Sollten Sie diese E-Mail irrtümlich erhalten haben, löschen Sie sie bitte.',
    "Le contenu de ce courriel est confidentiel. Si vous n'êtes pas le destinataire, veuillez le supprimer.",
    'Ai sensi del GDPR, se non desidera ricevere ulteriori comunicazioni risponda con CANCELLAMI.',
    'En cumplimiento de la LOPD puede ejercer sus derechos. Si no desea recibir más correos, responda BAJA.',
    'Nos termos da LGPD, se não deseja receber mensagens, responda REMOVER.',
  ];
  for (const footer of footers) {
    t.equal(written(`${yes}\n\n${footer}`), yes, footer);
    t.equal(written(`${yes}\n\n-- \n${footer}`), yes, `${footer} (below a delimiter)`);
    t.equal(written(`Yes!\n\n${footer}`), 'Yes!', `${footer} (below one word)`);
  }
});

t.test('leaves what somebody wrote', async (t) => {
  const texts = [
    'Please unsubscribe me from this list.',
    'No.\n\nUnder GDPR, please delete all my data.',
    'Nein.\n\nGemäß DSGVO widerspreche ich der Nutzung meiner Daten.',
    'Non merci.\n\nConformément au RGPD, effacez toutes les données.',
    'Hi,\n\nUnsubscribe from all future emails',
    'Hi Ada,\n\nplease take me off your list.\n\nGrace',
    'No, thank you.\n\nTo be clear, we do not want to receive these emails.',
    'No.\n\nIf you would, unsubscribe me.',
    'If you do not remove me from your list I will report you.',
    'We talked it over.\n\nIf you want us to join, send the contract.',
    'Hello,\nunsubscribe',
    'Not interested.\n\nUnsubscribe',
    'Not interested.\nUnsubscribe',
    'No, thank you.\n\nUnsubscribe from all future emails.\n\nGrace',
    'Kein Interesse.\n\nAbmelden',
    'Pas intéressé, merci.\n\nDésinscription',
    'No me interesa.\n\nDarse de baja',
    'Non mi interessa.\n\nAnnulla iscrizione',
    'Não tenho interesse.\n\nDescadastre-se',
    'Nein danke.\n\nWenn Sie mir keine Mails mehr schicken, bin ich zufrieden.',
    'Non merci.\n\nPour ma part, je ne veux plus recevoir vos messages.',
    'Grazie, no.\n\nPer favore, non desidero più ricevere email: mi cancelli.',
  ];
  for (const text of texts) t.equal(written(text), text);
});

/** Returns the classified text of a mail in HTML, and of one whose text was made from it without its links. */
const classified = (html: string, text = ''): string => readWritten({ text, html }).own_words;
const link = (words: string): string => `<a href="https://news.example/u?id=1">${words}</a>`;

t.test('takes a line of links for the words of a template, in any language', async (t) => {
  const words = [
    'Unsubscribe',
    'unsubscribe here',
    'Remove me from this list',
    'Stop receiving these emails',
    'Leave this list',
  ];
  words.push('Abmelden', 'Newsletter abbestellen', 'Se désabonner', 'Darse de baja', 'Disiscriviti', 'Cancellati');
  words.push('Descadastrar', 'Uitschrijven', 'Отписаться', '配信停止');
  for (const its of words) {
    t.equal(classified(`<p>Yes, gladly.</p><p>${link(its)}</p>`), 'Yes, gladly.', its);
    t.equal(
      classified(`<div>Yes, gladly.</div><table><tr><td>${link(its)}</td></tr></table>`),
      'Yes, gladly.',
      `${its} in a table`,
    );
    t.equal(
      classified(`<p>Yes, gladly.</p><p>${link('Website')} | ${link(its)}</p>`),
      'Yes, gladly.',
      `${its} beside another`,
    );
    t.equal(classified(`<p>${link(its)}</p>`), '', `${its} alone`);
  }
  for (const its of ['Unsubscribe', 'Abmelden', 'Se désabonner', 'Descadastre-se']) {
    const html = `<p>Yes, gladly.</p><p>${link(its)}</p>`;
    t.equal(readWritten({ text: '', html }).text, 'Yes, gladly.', `${its} is no part of the text`);
    t.equal(classified(html, `Yes, gladly.\n\n${its}`), 'Yes, gladly.', `${its} in both`);
  }
});

t.test('reads what somebody wrote in HTML, with links or without', async (t) => {
  const texts: [html: string, words: string][] = [
    ['<p>No.</p><p>Unsubscribe</p>', 'No.\n\nUnsubscribe'],
    [`<p>Please ${link('unsubscribe')} me.</p>`, 'Please unsubscribe me.'],
    [`<p>See ${link('my site')}</p>`, 'See my site'],
    ['<p><a name="_MailEndCompose">Please unsubscribe me.</a></p>', 'Please unsubscribe me.'],
    ['<p>Ask</p><p><a href="mailto:ann@blog.example">ann@blog.example</a></p>', 'Ask\n\nann@blog.example'],
  ];
  for (const [html, words] of texts) t.equal(classified(html), words, html);
  const both = `<p>No.</p><p>Unsubscribe</p><p>${link('Unsubscribe')}</p>`;
  t.equal(classified(both), 'No.\n\nUnsubscribe');
  t.equal(classified(both, 'No.\n\nUnsubscribe'), 'No.\n\nUnsubscribe', 'a person wrote it as well');
});
