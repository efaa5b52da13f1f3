import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import t from 'tap';
import { sentences } from '../../../src/recruitment/replies/certain/sentences.ts';
import { type Classification, classifyReply } from '../../../src/recruitment/replies/classify.ts';
import { readKnownWords } from '../../../src/recruitment/replies/known.ts';
import { decodeModel } from '../../../src/recruitment/replies/model.ts';
import { namedIn } from '../../../src/recruitment/replies/named.ts';
import { read, wordsWithin } from '../../../src/recruitment/replies/words.ts';
import { figuresOf } from '../../train/cross_validation.ts';
import { fingerprint, readTexts, train } from '../../train/training.ts';

/** Three texts of each kind in each language; none of them is among the texts that the model learns. */
const texts: Record<string, Record<string, string[]>> = {
  en: {
    positive: [
      'We talked it over and would be delighted to promote your bikes. Please send the agreement.',
      "Yes! I've used your planner for ages. How do I sign up, and do you pay monthly?",
      "Count me in, I'll put the link into Friday's mail.",
    ],
    question: [
      'Before I decide anything: what commission do you pay, and how long does the cookie last?',
      'Who are you, and where did you get my address?',
      'Is there a minimum number of sales per month?',
    ],
    not_now: [
      'We are snowed under until the relaunch. Please write again in October.',
      'Busy with exams right now, ping me after the 20th of June',
      "Our budget for this year is gone, but let's talk in January.",
    ],
    negative: [
      'Thank you for the kind offer, but we do not accept advertising of any sort.',
      'Not interested, but good luck with it!',
      "I've decided against it, the terms don't suit us.",
    ],
    wrong_person: [
      'I left the magazine in June. Please contact Ann Lee (ann.lee@example.com) instead.',
      "You've got the wrong person, I only fix the printers here.",
      'Forwarding this to our head of partnerships, who handles all of this.',
    ],
    angry: [
      'Stop spamming me, you idiots, or you will hear from my lawyer!',
      'This is the fifth mail this week. You people have no shame. Leave me alone!',
      'Remove me from your damn list NOW, I am reporting you for spam!!!',
    ],
    unsubscribe: [
      'Could you please take me off your mailing list? Thank you.',
      'Please do not send me any more emails. Kind regards',
      'unsubscribe',
    ],
  },
  de: {
    positive: [
      'Sehr gerne! Bitte schicken Sie uns den Vertrag, wir möchten am liebsten sofort starten.',
      'Ja, da mache ich mit. Wie hoch ist denn die Provision?',
      'Klingt super, wo kann ich mich anmelden?',
    ],
    question: [
      'Wie hoch ist die Provision, und wann wird sie ausgezahlt?',
      'Wer sind Sie und woher haben Sie meine Adresse?',
      'Bevor ich mich entscheide: Gibt es eine Mindestlaufzeit?',
    ],
    not_now: [
      'Im Moment haben wir leider keine Zeit. Bitte melden Sie sich im Herbst noch einmal.',
      'Bin bis Ende August in Elternzeit, danach gern.',
      'Unser Budget für dieses Jahr ist verplant, fragen Sie im Januar wieder an.',
    ],
    negative: [
      'Vielen Dank für das Angebot, aber wir nehmen grundsätzlich keine Werbung an.',
      'Danke, kein Interesse. Viel Erfolg weiterhin!',
      'Wir haben uns nach längerer Überlegung dagegen entschieden.',
    ],
    wrong_person: [
      'Dafür bin ich nicht zuständig, bitte wenden Sie sich an meine Kollegin Frau Schuster.',
      'Ich arbeite seit Mai nicht mehr bei diesem Verlag.',
      'Sie verwechseln mich mit jemandem, ich habe keinen Blog.',
    ],
    angry: [
      'Hören Sie endlich auf, mich mit Ihrem Spam zu belästigen, sonst schalte ich meinen Anwalt ein!',
      'Was für eine Frechheit! Das ist schon die vierte Mail von euch Idioten.',
      'Nehmt mich sofort aus eurem Scheißverteiler raus!!!',
    ],
    unsubscribe: [
      'Bitte nehmen Sie mich aus Ihrem Verteiler. Vielen Dank.',
      'Ich möchte keine weiteren E-Mails von Ihnen erhalten. Freundliche Grüße',
      'bitte abmelden',
    ],
  },
  fr: {
    positive: [
      'Avec grand plaisir ! Envoyez-moi le contrat et je le signe cette semaine.',
      'Oui, ça m’intéresse beaucoup. Quelle est la commission ?',
      'Je suis partante, comment je m’inscris ?',
    ],
    question: [
      'Quel est le montant de la commission et quand est-elle versée ?',
      'Qui êtes-vous et comment avez-vous eu mon adresse ?',
      'Avant de me décider, je voudrais savoir : y a-t-il un engagement minimum ?',
    ],
    not_now: [
      'Je suis débordée en ce moment, merci de me recontacter en octobre.',
      'En congé maternité jusqu’en août, on en reparle après ?',
      'Le budget de cette année est bouclé, revenez vers nous en janvier.',
    ],
    negative: [
      'Merci pour votre proposition, mais nous n’acceptons aucune publicité.',
      'Non merci, ça ne m’intéresse pas. Bonne continuation !',
      'Après réflexion, nous avons décidé de ne pas donner suite.',
    ],
    wrong_person: [
      'Je ne m’occupe pas de cela, adressez-vous à ma collègue Julie Martin.',
      'Je ne travaille plus dans cette maison d’édition depuis mai.',
      'Vous vous trompez de personne, je n’ai pas de blog.',
    ],
    angry: [
      'Arrêtez de me harceler avec votre spam, sinon je porte plainte !',
      'Quelle honte ! C’est déjà le quatrième mail, bande d’idiots.',
      'Retirez-moi immédiatement de votre liste de merde !!!',
    ],
    unsubscribe: [
      'Merci de bien vouloir me retirer de votre liste de diffusion.',
      'Je ne souhaite plus recevoir vos messages. Cordialement',
      'désinscription svp',
    ],
  },
  es: {
    positive: [
      '¡Con mucho gusto! Mándeme el contrato y lo firmo esta semana.',
      'Sí, me interesa mucho. ¿Cuál es la comisión?',
      'Me apunto, ¿cómo me registro?',
    ],
    question: [
      '¿Cuánto es la comisión y cuándo se paga?',
      '¿Quiénes son ustedes y de dónde sacaron mi correo?',
      'Antes de decidirme quisiera saber si hay permanencia mínima.',
    ],
    not_now: [
      'Ahora mismo estoy hasta arriba, escríbame de nuevo en octubre, por favor.',
      'Estoy de baja maternal hasta agosto, ¿hablamos después?',
      'El presupuesto de este año está cerrado, contáctenos en enero.',
    ],
    negative: [
      'Gracias por la propuesta, pero no aceptamos ningún tipo de publicidad.',
      'No, gracias, no me interesa. ¡Mucha suerte!',
      'Después de pensarlo hemos decidido no seguir adelante.',
    ],
    wrong_person: [
      'Yo no me encargo de eso, diríjase a mi compañera Laura Gil.',
      'Ya no trabajo en esa editorial desde mayo.',
      'Se equivoca de persona, yo no tengo ningún blog.',
    ],
    angry: [
      '¡Dejen de acosarme con su spam o los denuncio!',
      '¡Qué poca vergüenza! Ya es el cuarto correo, panda de idiotas.',
      '¡Quitadme ya de vuestra lista de mierda!',
    ],
    unsubscribe: [
      'Por favor, quítenme de su lista de correo. Muchas gracias.',
      'No deseo recibir más mensajes suyos. Un saludo',
      'dar de baja por favor',
    ],
  },
  it: {
    positive: [
      'Con grande piacere! Mi mandi il contratto e lo firmo in settimana.',
      'Sì, mi interessa molto. Qual è la commissione?',
      'Ci sto, come mi iscrivo?',
    ],
    question: [
      'Quanto è la provvigione e quando viene pagata?',
      'Chi siete e dove avete preso il mio indirizzo?',
      'Prima di decidere vorrei sapere se ci sono vincoli.',
    ],
    not_now: [
      'In questo momento sono sommersa, mi riscriva a ottobre per favore.',
      'Sono in maternità fino ad agosto, ne parliamo dopo?',
      'Il budget di quest’anno è chiuso, ricontattateci a gennaio.',
    ],
    negative: [
      'Grazie della proposta, ma non accettiamo nessuna pubblicità.',
      'No grazie, non mi interessa. In bocca al lupo!',
      'Dopo averci pensato abbiamo deciso di non procedere.',
    ],
    wrong_person: [
      'Non me ne occupo io, si rivolga alla mia collega Laura Conti.',
      'Non lavoro più in quella casa editrice da maggio.',
      'Ha sbagliato persona, io non ho nessun blog.',
    ],
    angry: [
      'Smettetela di tormentarmi con il vostro spam o vi denuncio!',
      'Vergogna! È già la quarta mail, branco di idioti.',
      'Toglietemi subito dalla vostra lista di merda!!!',
    ],
    unsubscribe: [
      'Vi prego di togliermi dalla vostra mailing list. Grazie.',
      'Non desidero più ricevere i vostri messaggi. Cordiali saluti',
      'cancellatemi per favore',
    ],
  },
  pt: {
    positive: [
      'Com muito gosto! Mande o contrato que eu assino esta semana.',
      'Sim, tenho muito interesse. Qual é a comissão?',
      'Tô dentro, como me inscrevo?',
    ],
    question: [
      'Quanto é a comissão e quando é paga?',
      'Quem são vocês e onde conseguiram o meu e-mail?',
      'Antes de decidir queria saber se há fidelização.',
    ],
    not_now: [
      'Neste momento estou atolada, escreva-me de novo em outubro, por favor.',
      'Estou de licença até agosto, falamos depois?',
      'O orçamento deste ano está fechado, contactem-nos em janeiro.',
    ],
    negative: [
      'Obrigado pela proposta, mas não aceitamos nenhuma publicidade.',
      'Não, obrigada, não tenho interesse. Boa sorte!',
      'Depois de pensar decidimos não avançar.',
    ],
    wrong_person: [
      'Não sou eu que trato disso, fale com a minha colega Laura Reis.',
      'Já não trabalho nessa editora desde maio.',
      'Enganou-se na pessoa, eu não tenho nenhum blog.',
    ],
    angry: [
      'Parem de me perseguir com o vosso spam ou faço queixa!',
      'Que vergonha! Já é o quarto e-mail, bando de idiotas.',
      'Tirem-me já dessa lista de merda!!!',
    ],
    unsubscribe: [
      'Por favor, retirem-me da vossa lista de e-mails. Obrigado.',
      'Não desejo receber mais mensagens vossas. Cumprimentos',
      'me descadastrar por favor',
    ],
  },
};

const labelOf = ({ kind, unsubscribe }: Classification): string =>
  unsubscribe && kind !== 'angry' ? 'unsubscribe' : kind;

t.test('leaves out no word that negates', async (t) => {
  for (const [language, { idle, rude }] of Object.entries(sentences))
    for (const word of 'no non not dont never nicht kein nie ne pas plus nunca nao mai neither'.split(' '))
      t.notOk(`${idle} ${rude}`.split(' ').includes(word), `${language}: ${word}`);
});

for (const [language, kinds] of Object.entries(texts)) {
  t.test(`tells the kinds of a reply in ${language} apart`, async (t) => {
    for (const [label, its] of Object.entries(kinds)) {
      for (const text of its) {
        const classified = classifyReply(text);
        t.equal(labelOf(classified), label, text);
        t.equal(classified.language, language, `language of: ${text}`);
      }
    }
  });
}

t.test('classifies texts of another style than those that it learned', async (t) => {
  // Written in another style, and hard: long-winded letters, hints, irony. None is learned. A line is language, label, text.
  const lines = readFileSync(join(import.meta.dirname, 'unlike.tsv'), 'utf8')
    .trimEnd()
    .split('\n');
  const classified = lines.map((line) => {
    const [language, label = '', text = ''] = line.split('\t');
    const classification = classifyReply(text.replaceAll('\\n', '\n'));
    return { label, answer: labelOf(classification), right_language: classification.language === language };
  });
  t.ok(figuresOf(classified).macro_f1 >= 0.84);
  t.ok(classified.every(({ right_language }) => right_language));
});

t.test('tells hard pairs apart', async (t) => {
  const pairs: [string, string][] = [
    ['Yes, but who pays the tax?', 'positive'],
    ['Who pays the tax?', 'question'],
    ['Not interested right now, maybe in spring.', 'not_now'],
    ['Not interested.', 'negative'],
    ['Please remove me from your list, thanks.', 'unsubscribe'],
    ['I told you THREE TIMES to remove me from your list, you morons!!', 'angry'],
    ['stop', 'unsubscribe'],
    ['STOP SENDING ME THIS CRAP!!!!', 'angry'],
    ['Talk to my colleague Maria, not to me.', 'wrong_person'],
    ['Thanks so much for thinking of us, but no.', 'negative'],
    ['who are you?', 'question'],
    ['Who the hell are you?! Leave me alone!', 'angry'],
  ];
  for (const [text, label] of pairs) t.equal(labelOf(classifyReply(text)), label, text);
});

t.test(
  'sees the wish to be taken off in an angry reply, and classifies a mail without text by its subject',
  async (t) => {
    t.match(classifyReply('Take me off your filthy list, you crooks!!!'), { kind: 'angry', unsubscribe: true });
    t.match(classifyReply('', 'Re: unsubscribe'), { unsubscribe: true });
    t.match(classifyReply(' \n', 'AW: abmelden'), { unsubscribe: true });
  },
);

t.test('guesses nothing in a language without a model', async (t) => {
  const texts: Record<string, string[]> = {
    ru: ['Да, мне интересно, пришлите подробности.', 'Нет, спасибо.', 'Идите к черту!'],
    zh: ['你好，我很感兴趣，请发送更多信息。', '不，谢谢。'],
    ja: ['興味があります。詳細を送ってください。'],
    ko: ['네, 관심 있습니다. 자세한 내용을 보내 주세요.'],
    he: ['כן, אני מעוניין. אנא שלחו פרטים.'],
    ar: ['نعم، أنا مهتم. أرسل التفاصيل من فضلك.'],
    el: ['Ναι, ενδιαφέρομαι. Στείλτε λεπτομέρειες.'],
    hi: ['हाँ, मुझे रुचि है। कृपया विवरण भेजें।'],
    th: ['ครับ สนใจครับ ส่งรายละเอียดมาได้เลย'],
    tr: ['Evet, ilgileniyorum. Detayları gönderin.', 'Merhaba, teklifiniz için teşekkürler ama ilgilenmiyorum.'],
    pl: ['Tak, jestem zainteresowana. Proszę o szczegóły.', 'Już nie pracuję w tej firmie.'],
    cs: ['Ano, mám zájem. Pošlete mi prosím podrobnosti.', 'Děkuji, ale nemám zájem.'],
    fi: ['Kyllä, olen kiinnostunut. Lähetä lisätietoja.'],
    hu: ['Igen, érdekel. Kérem, küldje el a részleteket.'],
    ro: ['Nu mai lucrez la această companie.', 'Mulțumesc, dar nu sunt interesat.'],
    nl: ['Bedankt, maar we hebben geen interesse.'],
    sv: ['Tack, men vi är inte intresserade.'],
    vi: ['Cảm ơn, nhưng tôi không quan tâm.'],
  };
  for (const [language, its] of Object.entries(texts))
    for (const text of its) {
      t.match(classifyReply(text), { kind: 'question', language, unsubscribe: false, named: null }, text);
      t.ok(classifyReply(text).confidence < 0.55, text);
    }
  const wishes = [
    'Отпишите меня, пожалуйста',
    '配信停止をお願いします',
    '请取消订阅',
    'Lütfen beni listenizden çıkarın.',
  ];
  wishes.push('Proszę usunąć mój adres z listy mailingowej.', 'Vă rog să mă dezabonați.', 'הסירו אותי מהרשימה');
  for (const text of wishes) {
    const { confidence, unsubscribe } = classifyReply(text);
    t.ok(unsubscribe && confidence < 0.55, `a person sees: ${text}`);
  }
});

t.test('asks a person about short texts in any other language, its neighbours too', async (t) => {
  // A line is a language, a tab and a reply: as people type them, some without accents.
  const lines = readFileSync(join(import.meta.dirname, 'foreign.tsv'), 'utf8')
    .trimEnd()
    .split('\n');
  t.ok(new Set(lines.map((line) => line.split('\t')[0])).size >= 25);
  for (const line of lines) t.ok(classifyReply(line.split('\t')[1] ?? '').confidence < 0.55, line);
  const known = readKnownWords();
  for (const { text } of readTexts().filter((_, index) => index % 40 === 0))
    t.ok(
      wordsWithin(read(text)).every(({ written }) => known.includes(written)),
      `after a change of texts: npm run train (${text})`,
    );
});

t.test('still knows very short texts', async (t) => {
  const texts = {
    positive: [
      'yes',
      'Yes!',
      'ok',
      'sure',
      'oui',
      'ja',
      'gerne',
      'sí',
      'sim',
      'va bene',
      '👍',
      'sounds good',
      'Absolutely!',
    ],
    negative: ['no', 'nope', 'nein', 'não', 'no thx', 'kein Interesse', 'pas intéressé'],
    unsubscribe: ['stop', 'unsubscribe', 'remove me', 'abmelden'],
  };
  for (const [label, its] of Object.entries(texts))
    for (const text of its) {
      const classified = classifyReply(text);
      t.equal(labelOf(classified), label, text);
      t.ok(classified.confidence >= 0.55, text);
    }
});

t.test('is sure of a wish to be taken off that is said in so many words alone', async (t) => {
  const sure = [
    'Please remove me from your mailing list.',
    'Not interested, please take me off your list.',
    'Please do not contact me again.',
    'No more emails please, thank you.',
    'Please stop emailing me.',
    'Please remove this address from your list.',
    'Bitte nehmen Sie mich aus Ihrem Verteiler.',
    'Merci de me retirer de votre liste de diffusion.',
    'Por favor, dadme de baja de vuestra lista.',
    'Vi prego di cancellarmi dalla vostra lista.',
    'Por favor, removam o meu endereço da vossa lista.',
    'Hi Ada,\n\nI no longer wish to receive these e-mails. Thank you for your understanding.\n\nMia Brandt',
    'Könnten Sie mich bitte aus dem Verteiler nehmen? Danke!',
    'Bitte löschen Sie meine Daten und schreiben Sie mir nicht mehr.',
    'Je ne souhaite plus recevoir vos mails.',
    'No me envíen más correos, por favor.',
    'Non scrivetemi più, grazie.',
    'Não me mandem mais e-mails, por favor.',
  ];
  for (const text of sure) {
    const { unsubscribe, confidence } = classifyReply(text);
    t.ok(unsubscribe && confidence >= 0.55, `sure: ${text}`);
  }
  const unsure = [
    'Please stop by our office to discuss',
    'Please remove the NDA clause and we have a deal',
    'I do not want to unsubscribe, I want to know more',
    "Don't take me off the list please, I just need till Friday",
    'Não quero sair da lista, quero saber mais',
    'Je ne veux pas me désabonner, au contraire : envoyez-moi le contrat',
    'Ich will mich nicht abmelden, im Gegenteil',
    'Non voglio disiscrivermi, anzi',
    'No quiero darme de baja, al contrario',
    'Is your mailing list large?',
    // Denied, in the word order of each language.
    'Bitte löschen Sie mich nicht aus dem Verteiler. Ich möchte gerne Partner werden.',
    'Bitte streichen Sie mich nicht aus der Liste, ich bin noch interessiert.',
    'Nein, bitte nicht abmelden',
    'Ne me désinscrivez pas',
    'Non cancellatemi',
    'No remover',
    'Please never stop sending me emails',
    // Past, asked, or a condition.
    'I accidentally unsubscribed. Please add me back.',
    'If I join, can I unsubscribe later?',
    'Can I unsubscribe?',
    'Falls ich teilnehme: Kann ich mich jederzeit wieder abmelden?',
    'Is there a way to unsubscribe from just the weekly stats but remain a partner?',
    'Why did you remove me from your list?',
    // About somebody or something else.
    "Please delete my previous application, I'd like to apply again with the new domain.",
    "Please remove Tom from cc, he left. I'm your contact now and we want to join.",
    'Bitte nehmen Sie Herrn Meier aus dem Verteiler, ich bin künftig Ihr Ansprechpartner.',
    'Please unsubscribe my old address bob@old.example and use this one. Looking forward to the partnership!',
    'Bitte entfernen Sie meine alte Adresse nicht, ich will weiter dabei sein',
    'Please remove me from the list, I will sign up with my private address.',
    'Remove me from your list or send me the contract',
    'Please take me off hold',
    'Please delete my account',
    'Please cancel my subscription',
    'Bitte nehmen Sie uns.',
    'Nehmen Sie mich bitte in Ihren Verteiler auf.',
    // Texts of programs.
    'Thanks for signing up! Use code WELCOME10. You can unsubscribe at any time.',
    'If you are not the intended recipient, please delete this message and remove it from your system.',
  ];
  for (const text of unsure) {
    const classified = classifyReply(text);
    t.notOk(classified.unsubscribe && classified.confidence >= 0.55, `not sure: ${text}`);
  }
});

t.test('is sure of anger that a text consists of alone', async (t) => {
  const sure = [
    'Fuck off, you spammers, I am calling my lawyer!',
    'You idiots, stop sending me this fucking spam! Remove me from your list or I will sue you!',
    'Lasst mich in Ruhe, ihr Spammer!!',
    'Arrêtez de me harceler !!!',
  ];
  for (const text of sure) t.ok(classifyReply(text).confidence >= 0.8, `sure: ${text}`);
  const unsure = [
    'Well, well, well, there you are, every Tuesday, like the bin men.',
    'Shut up and take my money :D',
    'Shut up and take my money',
    "This is insane. I hate that I didn't find you earlier. Let's do it.",
    'You bastards, this is exactly what I needed.',
    'Fuck off, you idiots :D',
    'Enough. I will call you!',
    'Holy shit, yes!',
  ];
  for (const text of unsure) {
    const { kind, confidence } = classifyReply(text);
    t.ok(kind !== 'angry' || confidence <= 0.5, `not sure: ${text}`);
  }
  const calm = [
    'The lawyer is content, and so am I.',
    'I am in court until Thursday.',
    'We stop at five today.',
    'Thank you for your patience.',
    'Unser Anwalt liest es gerade.',
    "L'avocat a tout relu.",
  ];
  for (const text of calm) {
    const { kind, confidence } = classifyReply(text);
    t.notOk(kind === 'angry' && confidence >= 0.8, text);
  }
});

t.test('gives the colleague whom a wrong person names', async (t) => {
  const named: [string, ReturnType<typeof namedIn>][] = [
    ['Please contact my colleague Jane Foster.', { name: 'Jane Foster' }],
    [
      'Mr Hill has retired. His successor is Rachel (rachel@example.com).',
      { name: 'Rachel', email: 'rachel@example.com' },
    ],
    ['Looping in Desmond.', { name: 'Desmond' }],
    ['Zuständig ist Frau Dr. Hahn: hahn@example.de.', { name: 'Frau Dr. Hahn', email: 'hahn@example.de' }],
    ["Je mets Hugo en copie, c'est lui qui gère.", { name: 'Hugo' }],
    ['Hable con Pedro Ruiz.', { name: 'Pedro Ruiz' }],
    ['Metto in copia Stefano, che segue queste cose.', { name: 'Stefano' }],
    ['Fala com o Pedro.', { name: 'Pedro' }],
    ['Wrong person, sorry.', null],
  ];
  for (const [text, expected] of named) t.same(namedIn(text), expected, text);
  t.same(classifyReply('I do not handle this, please contact my colleague Jane Foster.').named, {
    name: 'Jane Foster',
  });
  t.equal(classifyReply('Count me in! Contact Jane Foster for the bank details.').named, null);
});

t.test('classifies any string, with a confidence from 0 to 1', async () => {
  fc.assert(
    fc.property(
      fc.oneof(fc.string({ unit: 'binary' }), fc.string({ unit: 'grapheme' })),
      fc.string(),
      (text, subject) => {
        const { confidence, language } = classifyReply(text, subject);
        return confidence >= 0 && confidence <= 1 && (language === null || /^[a-z]{2}$/.test(language));
      },
    ),
    { seed: 20_261_122, numRuns: 300 },
  );
});

t.test('reads a bounded part of a text of 1 MB', async (t) => {
  // Each of these would take minutes if it was read as a whole, or if a pattern went back over it.
  for (const unit of ['a', '@', '.', 'a@', 'A b ', '?\n', 'no ', '😡', 'Mr ', 'x.', '\u0301']) {
    t.match(classifyReply(unit.repeat(2 ** 20 / unit.length), unit.repeat(2 ** 20 / unit.length)), { kind: String });
  }
});

t.test('ships the weights of its texts, which training makes again', async (t) => {
  const file = readFileSync(join(import.meta.dirname, '../../../src/recruitment/replies/weights.bin'));
  const examples = readTexts();
  t.equal(decodeModel(file).fingerprint, fingerprint(examples), 'after a change of texts or features: npm run train');
  t.ok(file.length < 1_000_000);
  const some = examples.filter((_, index) => index % 40 === 0);
  t.same(train(some).weights, train(some).weights, 'training is deterministic');
});

t.test('learns at least 1,800 texts, each kind in each language, and none twice', async (t) => {
  const examples = readTexts();
  t.ok(examples.length >= 1_800);
  const kinds = new Set(examples.map(({ language, label }) => `${language} ${label}`));
  for (const language of Object.keys(texts)) {
    for (const kind of Object.keys(texts.en ?? {})) t.ok(kinds.has(`${language} ${kind}`), `${kind} in ${language}`);
  }
  t.equal(new Set(examples.map(({ language, text }) => `${language} ${text}`)).size, examples.length);
  const learned = new Set(examples.map(({ text }) => text));
  for (const text of Object.values(texts).flatMap((kinds) => Object.values(kinds).flat())) {
    // Phrases of the lexicon are the same wherever they are written.
    if (text.split(' ').length > 5) t.notOk(learned.has(text), text);
  }
});
