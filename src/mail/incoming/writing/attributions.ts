import { month_pattern } from '../automatic/month_names.ts';

/** Lines by which mail programs introduce what they quote. */

const verbs =
  'wrote|writes|said|a [ée]crit|[ée]crivait|[ée]crit|schrieb|schreibt|geschrieben|hat folgendes|folgendes geschrieben|escribi[óo]|ha escrito|escribe|ha scritto|scrisse|scriveva|escreveu|escreve|schreef|geschreven|skrev|napsal|nap[íi]sal|napisa[łl]|pisze|kirjoitti|yazd[ıi]|[íi]rta|a scris|έγραψε|написала?|пишет|пише|написав|כתב|كتب|写道|写|寫道|書きました|のメッセージ|作成|작성|wrote the following|sent|vi[ếe]t|menulis|napísal|написао|va escriure|şunu yazdı|hat geschrieben|a trimis|님이 작성|ने लिखा|เขียนว่า';
const verb = new RegExp(`(?:^|[^\\p{L}])(?:${verbs})(?=$|[^\\p{L}])|写道|寫道|書きました|작성`, 'iu');
const ends_with_verb = new RegExp(`(?:${verbs})\\s*(?:<[^<>]{0,200}>\\s*)?(?:[:：]\\s*)?[-_]*$`, 'iu');

const month = `(?:${month_pattern}|серп|січ|лют|бер|квіт|трав|черв|лип|вер|жовт|лист|груд|янв|фев|мар|апр|мая|июн|июл|авг|сен|окт|ноя|дек|mei|mrt|maj)`;
/** A time, a day of the calendar or an address. */
const evidence = new RegExp(
  `\\d{1,2}[:.h]\\d{2}|\\d{1,4}[./-]\\d{1,2}[./-]\\d{2,4}|\\d{1,2}(?:st|nd|rd|th|er|º)?\\.?,?\\s(?:de |di )?${month}|${month}\\p{L}*\\.? \\d{1,2}|\\d{4}年|[^\\s@]@[^\\s@]`,
  'iu',
);
const opening =
  /^(?:on|at|in|am|le|el|il|em|no dia|op|den|w dniu|dnia|pe|kl|från|von|von:|on:|[-*_]{2,}\s*\p{L}|\d{1,4}[-./年년]|\d{1,2}[:.]\d{2}|\d{1,2}\.?\s\p{L}|(?:mon|tue|wed|thu|fri|sat|sun|пон|вто|сре|чет|пят|суб|вос|lun|mar|mer|jeu|ven|sam|dim)\p{L}*[,.]?\s|在|[<"'*\p{L}])/iu;

const separators =
  /^\W{0,4}[-_=*]{2,}\s*(?:original(?:e| e-?)?[ -]?(?:message|mail|nachricht|appointment)|urspr[uü]ngliche (?:nachricht|mail|e-?mail)|original(?:nachricht|meddelande|melding)|message (?:d.origine|original|initial|transf[eé]r[eé])|mensaje (?:original|reenviado)|messaggio (?:originale|inoltrato)|mensagem (?:original|encaminhada|reencaminhada)|oorspronkelijk bericht|doorgestuurd bericht|forwarded (?:message|by|mail)|weitergeleitete (?:nachricht|mail)|исходное сообщение|пересылаемое сообщение|пересланное сообщение|reply message|quoted (?:message|text)|original|oprindelig (?:meddelelse|besked|mail)|opprinnelig (?:melding|e-?post)|ursprungligt? (?:meddelande|mejl)|alkuper[äa]inen viesti|wiadomo[śs][ćc] oryginalna|oryginalna wiadomo[śs][ćc]|p[ůu]vodn[íi] (?:zpr[áa]va|e-?mail)|p[ôo]vodn[áa] spr[áa]va|eredeti [üu]zenet|mesaj(?:ul)? original|[öo]zg[üu]n ileti|orijinal (?:ileti|mesaj)|αρχικ[όο] μ[ήη]νυμα|(?:оригинальное|первоначальное) сообщение|(?:вихідне|оригінальне|початкове) повідомлення|tin nhắn gốc|thư gốc|pesan asli|oorspronkelijke e-?mail|antwort nachricht|missatge original|원본 (?:메일|메시지)|הודעה מקורית|الرسالة الأصلية|原始邮件|原始郵件|转发邮件|元のメッセージ)(?=\W|$).{0,80}$/iu;
/** Words between dashes, as mail programs of every language put them above a header. */
export const isBetweenDashes = (line: string): boolean =>
  line.length < 80 && /^\s{0,3}[-_=]{3,20} {0,2}\p{L}[\p{L}\p{M} .'’-]{2,40}[-_=]{3,20}\s{0,3}$/u.test(line);
const begin_forward =
  /^\W{0,4}(?:begin forwarded message|anfang der weitergeleiteten (?:nachricht|e-?mail)|d[ée]but du message (?:transf[ée]r[ée]|r[ée]exp[ée]di[ée])|inicio del mensaje reenviado|inizio (?:del )?messaggio inoltrato|in[íi]cio da mensagem (?:re)?encaminhada|begin doorgestuurd bericht|v(?:id)?arebefordrat (?:brev|meddelande)|начало переадресованного (?:письма|сообщения))(?:\s*[:：])?\s*$/iu;

/** The line that help desks write above their quote. */
const above_line =
  /^\W{0,10}(?:please |bitte |merci de |por favor,? |si prega di )?(?:(?:type|write|enter|add) (?:your )?(?:reply|response|answer|comment)s?|reply|respond|write) (?:anywhere )?above this line\b[\w ]{0,40}\W{0,10}$|^\W{0,10}(?:in replies )?(?:all|any) text above this line (?:is|will be) \w[\w ]{0,40}\W{0,10}$|^\W{0,10}(?:bitte )?(?:geben sie ihre antwort |antworten sie )?(?:oberhalb|über) dieser zeile(?: antworten| ein)?\W{0,10}$|^\W{0,10}(?:veuillez )?(?:saisi(?:r|ssez)|[ée]cri(?:re|vez)|r[ée]pond(?:re|ez)) (?:votre r[ée]ponse )?au-dessus de cette ligne\W{0,10}$|^\W{0,10}(?:por favor,? )?(?:escrib[ae]|responda?)(?: su respuesta)? (?:por )?encima de esta l[íi]nea\W{0,10}$|^\W{0,10}(?:si prega di )?(?:digitare|scrivere|rispondere)(?: la risposta)? sopra (?:a )?questa riga\W{0,10}$|^\W{0,10}(?:por favor,? )?(?:digite|escreva|responda)(?: (?:a )?sua resposta)? acima desta linha\W{0,10}$/iu;

export const isAboveLine = (line: string): boolean => line.length < 200 && above_line.test(line);

/** `-----Original Message-----`, `Begin forwarded message:` and their like. */
export const isSeparatorOfOriginal = (line: string): boolean =>
  line.length < 200 && (above_line.test(line) || separators.test(line) || begin_forward.test(line));

/** A cheap look at the first line, before lines are joined. */
export const mayBeginAttribution = (line: string): boolean => line.length < 400 && opening.test(line.trimStart());

/** A day with its year and a time behind two words at most, whatever the language. */
const begins_with_stamp =
  /^\s{0,9}(?=.{0,70}\b(?:19|20)\d\d)(?=.{0,90}\d[:.h]\d\d)(?:\p{L}{1,12}[.,]{0,2} ){0,2}[\d(]/u;

/** Words that an attribution begins with, and a sentence hardly before it. */
export const beginsAttribution = (line: string): boolean =>
  begins_with_stamp.test(line) ||
  /^\s*(?:on|at|am|le|el|il|em|no dia|op|den|w dniu|dnia|von|\d{1,4}[-./年]|\d{1,2}\.? \p{L}+ \d{4}|在)(?=[\s\d]|$)/iu.test(
    line,
  );

/**
 * Returns whether a line is an attribution. `quoted`: a quote follows, so that less is needed. Date and writer with a verb: `On Mon, 1 Feb 2027 at
 * 10:00, Ada <ada@example.com> wrote:`; date and writer alone: `2027-02-01 10:00 GMT+01:00 Ada:`.
 */
export function isAttribution(line: string, quoted: boolean): boolean {
  const words = line.trim();
  const ends = /[:：]\s*[-_*]*$/.test(words) || ends_with_verb.test(words) || /--$/.test(words);
  if (ends && verb.test(words) && (evidence.test(words) || quoted)) return !isSentence(words, quoted);
  if (stamped.test(words) || citing.test(words)) return true;
  if (dated.test(words)) return !/<[^<>]*$/.test(words);
  if (quoted && dated_without_time.test(words)) return true;
  return quoted && /^(?:on|am|le|el|il|em|op|at)\b.{5,200}[:：]$/i.test(words) && evidence.test(words);
}

/** A time and an address before the colon need no verb: `2.2.2026, 10:04, "Ada" <ada@shop.example>:`. */
const stamped = /^(?=.{0,200}\d{1,2}[:.]\d{2}).{4,200}<[^<>\s]+@[^<>\s]+>\)?[^\d:：]{0,12}[:：]$/u;
const citing = /^(?:quoting|zitat von|citando(?: a)?|citation de|cita de|citat från) .{0,100}@[^\s]{1,200}[:：]$/i;
const dated =
  /^\d{4}-\d{2}-\d{2} \d{1,2}:\d{2}(?::\d{2})?(?: (?:AM|PM))? (?:GMT|UTC|[+-]\d{4})(?:[+-]\d{1,2}:?\d{2})?,? .{1,200}$/;

const dated_without_time = /^\d{4}[/-]\d{1,2}[/-]\d{1,2} .{1,100}<[^<>\s]{3,200}@[^<>\s]{3,200}>:?$/;

/** Somebody's own sentence that happens to name a time: `I said on 3.4. at 10:00 that we agree:`. */
const isSentence = (words: string, quoted: boolean): boolean =>
  !quoted && /^(?:i|we|as|he|she|they|ich|wir|je|nous|yo|io|eu)\b/i.test(words) && !/@/.test(words);
