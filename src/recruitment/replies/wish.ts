import { plain } from './words.ts';

/** A wish to be taken off in the writer's own words: without one, what the model thinks bars nobody. In the normal form of words. */
const wishes = [
  String.raw`\b(?:unsub\w{0,20}|unsuscri\w{0,20}|opt(?:ed|ing|s)?[ -](?:\w{1,30} ){0,3}out)\b`,
  String.raw`\b(?:tak|took|strik|struck|cross|drop|get|scratch|pull|cut|clear|keep|leav)\w{0,20} (?:me|us|my|our|this|it|them)\b.{0,60}\b(?:off|out|from|alone)\b`,
  String.raw`\b(?:remov|delet|eras|exclud|suppress|purg|scrub|wip)\w{0,20} (?:me|us|my|our|it|all (?:my|our)|this (?:e-?mail|mail|address|inbox|account)|[\w.+-]{1,64}@)`,
  String.raw`\b(?:taken|remov\w{0,20}|delet\w{0,20}|eras\w{0,20}|off|out of|from) .{0,20}(?:your|the|this|any|all) .{0,30}(?:list|database|records|mailings?|system|files|books?|register|contacts)\b`,
  String.raw`\b(?:stop|ceas|quit|discontinu|refrain|end|halt)\w{0,20} .{0,30}(?:e-?mail|mail|messag|contact|writ|send|correspond|newsletter)`,
  String.raw`\bno (?:more|further|longer)\b.{0,40}(?:e-?mail|mail|messag|contact|letter|correspond|newsletter|receiv|send|writ|outreach|of these)`,
  String.raw`\b(?:do not|don.?t|dont|never|not|without|rather not|no longer|prefer not) .{0,40}\b(?:e-?mail|mail|contact|write|send|messag|receiv|hear from|get|reach out)`,
  String.raw`\b(?:leave (?:me|us) (?:alone|in peace|be)|lose (?:my|our|this) (?:e-?mail|address|number|contact)|do.not.contact|suppression list)\b|^\W{0,9}stop\b`,
  String.raw`\b(?:be|being|get|been) (?:remov|delet|eras|taken off|left (?:off|out))|\b(?:request|ask)\w{0,20} .{0,30}(?:removal|deletion|remov|delet|taken off)|\b(?:removal|deletion) (?:please|request)|\b(?:withdraw|revok|object)\w{0,20} .{0,40}(?:consent|data|marketing|contact)`,
  String.raw`\b(?:turn|switch|get|stop)\w{0,20} (?:off |receiving |getting )?(?:these|this|the (?:e-?mails?|mails?|messages?|follow-ups?))\b|\b(?:cancel|end|delete|remove)\w{0,20} (?:my |our |the |these |this |all )?(?:\w{1,30} )?(?:subscription|e-?mails?|mails?|newsletters?|notifications?|messages?|entry|details|address(?:es)?|contact)\b|\bnothing (?:more|further|else)\b|\bno more\b`,
  String.raw`^(?:[^\s]{1,30} ){0,3}(?:remove|removal|delete|cancel|off|out|quit|end)\b(?: [^\s]{1,30}){0,3}$|\btake (?:\w{1,30} ){1,3}(?:out|off)\b`,
  String.raw`\bni(?:chts|x) mehr\b|absehen|abzusehen|widerspruch|verschon|schreib\w{0,20} .{0,20}nicht mehr|^(?:bitte )?(?:loschen|entfernen)|\bexclu\w{1,20} .{0,60}(?:domain|domaine|dominio)|\b(?:sin|sem|niente|nada|chega|plus|pas)\b .{0,10}(?:mas|mais|piu|de|d.|pub)\S{0,20} ?.{0,20}(?:e-?mail|mail|correo|mensaj|mensag|messag|envi|envo|invi|pub)|\b(?:me opongo|m.oppose|oponho|mi oppongo)\b|supresion|cancelamento|annulla \w{0,20}iscrizione|\b(?:apag|borr|effac|supprim)\w{1,20}\b|\b(?:tolto|togliere|togliete|enlever|quitar|levasse)\b`,
  String.raw`abmeld|abbestell|austrag|abzumeld|(?:losch|entfern|streich|strich|nehm|nimm|werf|schmeiss)\w{0,20} .{0,80}(?:mich|uns|mein|unser|adress|verteiler|liste|daten|raus)|(?:mich|uns|meine|unsere|adress|daten|domain)\w{0,20}\b.{0,80}(?:losch|entfern|streich|gestrichen|nehm|raus|ausschliess)`,
  String.raw`\bkein\w{0,20} .{0,40}(?:mail|nachricht|newsletter|werbung|post|zusendung|angebot|anschreib)|\bnicht (?:mehr|weiter|langer)\b.{0,40}(?:schreib|kontakt|send|schick|mail|erhalt|bekomm|belastig)|\baus (?:dem|der|ihre\w|eure\w|deine\w) .{0,20}(?:verteiler|liste|datenbank|kartei)|widerspr\w{1,20} .{0,60}(?:nutz|verwend|send|werb|daten)|(?:unterlass|verzicht)\w{0,20} .{0,40}(?:mail|zusend|nachricht|anschreib|werb)`,
  String.raw`desinscri|desabonn|\b(?:retir|supprim|effac|enlev|ray|sort|ot)\w{0,20}.{0,80}(?:moi|nous|mon|mes|notre|nos|adresse|liste|fichier|donnees|contacts|envois)|\b(?:me|nous|m|etre) (?:retir|supprim|enlev|ray|desins|desabo)`,
  String.raw`\b(?:ne|n.|plus) .{0,40}(?:ecri|contact|envoy|sollicit|recev|recoi|mail|message|courriel|courrier|demarch)|\b(?:cess|arret)\w{0,20} .{0,40}(?:ecri|contact|envoy|envoi|sollicit|mail|message)`,
  String.raw`\bbaja\b|\b(?:elimin|borr|quit|saqu|sac|retir|suprim|remuev|exclu)\w{0,20}(?:me|nos)\b|\b(?:elimin|borr|quit|saqu|sac|retir|suprim|remuev|exclu)\w{0,20} .{0,80}(?:lista|correo|datos|direccion|base|envios|contacto)|cancel\w{0,20} .{0,30}suscripcion`,
  String.raw`\bno (?:me |nos )?(?:vuelvan a |sigan |quier\w{1,20} |dese\w{1,20} |queremos |quisier\w{1,20} |mas )?.{0,20}(?:envi|mand|escrib|contact|recib|correo|mensaje)|\bdej\w{0,20} de .{0,20}(?:envi|mand|escrib|contact|recib)`,
  String.raw`cancella|disiscri|\b(?:togli|toglie|rimuov|elimin|lev|depenn)\w{0,20}(?:mi|ci|temi|teci)\b|\b(?:togli|rimuov|elimin|lev|depenn)\w{0,20} .{0,80}(?:lista|indirizzo|dati|contatt|nominativo|database|archiv)|\bnon .{0,30}(?:invi|mand|scriv|contatt|ricev)|\b(?:smett|basta|cess)\w{0,20} .{0,30}(?:mail|messag|scriv|invi|mand|contatt)`,
  String.raw`descadastr|cancel\w{0,20} .{0,40}(?:inscricao|subscricao|envio|assinatura)|\b(?:remov|retir|tir|apag|elimin|exclu|risqu)\w{0,20}-?(?:me|nos)?\b.{0,80}(?:lista|mailing|dados|endereco|contat|contact|e-?mail|base|me\b)|\bme (?:remov|retir|tir|exclu|apag)|\bsair da\b|\b(?:deix|par)\w{0,20} de .{0,20}(?:envi|mand|escrev|contat|contact|receb)|\bnao .{0,40}(?:envi|mand|escrev|contat|contact|receb|e-?mails?)`,
].map((wish) => new RegExp(wish, 'u'));

/** The same in languages that no model reads: a person looks at it. */
const foreign_wishes =
  /отпи[сш]|отказ(?:аться|ываюсь) от (?:рассылки|подписки)|(?:удалите|уберите|исключите) (?:меня|мой|наш|нас)|не (?:пишите|присылайте|отправляйте)|відпис|видаліть мене|не пишіть|abonelikten|listeden çık|listenizden çıkar|(?:bir daha|artık) (?:yazma|mail|e-posta)|退[订訂]|取消[订訂][阅閱]|不要再(?:发|發|联系|聯繫)|別再|配信(?:停止|を?停止|解除)|購読(?:解除|中止)|送(?:信|付)?(?:しない|らない)で|수신 ?거부|구독 ?(?:취소|해지)|보내지 ?마|הסי?ר(?:ו|י|ה)? (?:אותי|אותנו)|להסיר אותי|אל תשלח|إلغاء الاشتراك|(?:أزل|احذف|أزيلو|احذفو)\S{0,6}|لا ترسل|διαγρ[αά][φψ]|απεγγραφ|μη(?:ν)? (?:μου |μας )?(?:στέλν|γράφ)|सदस्यता (?:समाप्त|रद्द)|ना भेजें|मत भेज|ยกเลิกการ(?:รับ|สมัคร)|wypis|usu[nń]\S{0,20} .{0,40}(?:adres|list|mnie)|rezygnuj|odhlas|odhlás|vyřa[dď]|vyraďte|poista\S{0,20} .{0,40}(?:lista|minut|osoite)|peruut\S{0,20} tilau|leirat|töröl|ne (?:írjanak|küldj)|dezabon|(?:ștergeți|stergeti|scoateți|scoateti)|ta bort mig|avregistrera|avprenumerera|afmeld|uitschrijv|(?:haal|verwijder)\S{0,20} .{0,40}(?:mij|me|ons|adres|lijst)|afmeld mig|fjern (?:meg|mig)|meld (?:meg|mig) (?:av|fra)|hủy đăng ký|berhenti berlangganan|odjav|ukloni/iu;

/** Whether a text that sounds like a wish to be taken off says something against it. Then a person decides. */
const removal =
  '(?:unsubscrib|remove me|take me off|off (?:the|your) list|stop (?:writing|emailing|sending)|abmelden|vom verteiler|désabonn|désinscri|darme de baja|dar de baja|borr|cancell|disiscri|sair da lista|descadastr|remover)';
const doubts = [
  new RegExp(
    String.raw`\b(?:not|don[’']?t|do not|never|nicht|kein|ne|pas|no|non|não|nao)\b[^.!?,;\n]{0,25}${removal}`,
    'iu',
  ),
  /\bstop by\b|\bremove (?:the|that|your|this(?! (?:e-?mail|mail|address|inbox|account)))\b|\btake (?:it|this|that) off\b/iu,
  /^[\s"“]{0,5}(?:yes|yep|yeah|sure|sounds (?:great|good)|great|ja|gerne?|oui|sí|sì|sim)\b/iu,
  /https?:|\+unsubscribe@|\byou (?:get|received?|are receiving) (?:this|our)\b|\bfrom all future\b|\bif you (?:do not|don[’']?t|no longer) (?:want|wish)\b/iu,
];
const most_read = 8_000;

/** Whether a text asks to be taken off in so many words, and says nothing against it. */
export function saysWish(text: string): boolean {
  const read = text.slice(0, most_read);
  const lines = plain(read).split('\n').join(' ');
  return wishes.some((wish) => wish.test(lines)) && !doubts.some((doubt) => doubt.test(read));
}

export const mayWishInAnyLanguage = (text: string): boolean => foreign_wishes.test(text.slice(0, most_read));
