/** Removes the footers that newsletters, groups, companies and virus scanners append. */
import { anyOf } from '../message/any_of.ts';

/** Begins of lines: each says what no person says of their own mail, or links to where a list is left. */
const footer = anyOf`
    ^\W{0,6}(?:you(?:.re| are)? (?:(?:have )?(?:get|got|received?|receiving)) (?:this|these|our)\b.{0,40} (?:because|since|as)\b|you are (?:currently )?subscribed to\b|this (?:e-?mail|message|mail|newsletter) (?:was|has been|is) (?:being )?(?:sent|delivered) (?:to|by|because|from|using|with)\b|why (?:did|do|am) (?:i|you) (?:get|receiv))
    ^\W{0,6}(?:if you(?:.d)? (?:do not|don.t|no longer|would|wish|want|prefer|like|believe)\b|to|click(?: here)? to|click here if you|you (?:can|may)|want to|don.t want)\b.{0,100}\b(?:unsubscrib\w*|opt[ -]?out|opted out|stop receiving|(?:not|no longer|longer|more) (?:to )?receiv\w*|manage (?:your )?(?:preferences|subscription)|(?:get|receive) no more|not (?:wish|want) to receive|(?:receive|receiving|get|want) (?:these|this|our|any|such)\b)
    ^\W{0,6}(?:(?:don.t|do not|no longer) want (?:to (?:get|receive|hear) )?(?:these|this|our|any|such|more|future)\b.{0,40}\?|(?:reply|text|respond|answer)\b.{0,20}\b(?:stop|unsubscribe|remove|cancel|end)\b.{0,3} (?:to|and|if)\b)
    ^\W{0,6}(?:(?:in|under|pursuant|according|gem[äa](?:ß|ss)|laut|nach|conform[ée]ment|ai sensi|in (?:ottemperanza|conformit[àa])|en (?:cumplimiento|virtud|aplicaci[óo]n|application|vertu)|de (?:conformidad|acuerdo)|em (?:cumprimento|conformidade)|nos termos)\b.{0,40}\b(?:law|gdpr|ccpa|can-?spam|dsgvo|rgpd|lgpd|lopd\S{0,5}|loi|ley|lei|legge|regulation|reglamento|regolamento|regulamento|d\.? ?lgs\S{0,6})|gdpr|ccpa|dsgvo|rgpd|lgpd|lopd|privacy|datenschutz(?:hinweis)?|informativa)\b.{0,250}\b(?:if you|you (?:may|can|have)|si (?:usted )?no (?:desea|quiere)|puede|tiene derecho|se non (?:desidera|vuole)|pu[òo]|sie (?:k[öo]nnen|haben)|wenn sie|falls sie|(?:si )?vous (?:pouvez|disposez|ne souhaitez)|voc[êe] pode|(?:se|caso) n[ãa]o (?:desej|quer|quis|queir|pretend)|pode (?:a qualquer|solicitar|exercer))
    ^\W{0,6}(?:unsubscribe|opt[ -]?out|manage (?:your )?(?:preferences|subscriptions?|e-?mails?)|update (?:your )?(?:preferences|profile)|e-?mail preferences|view (?:this (?:e-?mail|message) )?(?:in|online)|privacy policy|forward to a friend)(?: (?:from|here|at any time|this list|instantly|now|link|all|our|future|these|this|in|your|a|the|web|e-?mails?|mailings?|newsletters?|messages?|list|browser|online)){0,8}\W{0,6}(?:$|https?:|mailto:|[|<[(·•-] ?\S.{0,200}$)
    ^\W{0,6}.{0,40} mailing list\W{0,3}$|^\W{0,6}(?:for more options|to (?:post|view this discussion|subscribe)\b.{0,60}|list (?:info|archives?))\b.{0,40}(?:group|list|visit|https?:)|^\W{0,6}.{0,60}https?:\S{0,80}(?:unsubscribe|listinfo|optout|opt-out|preferences|abmelden|desabonn|desinscri)\S{0,200}$
    ^\W{0,6}(?:confidentiality|legal|privacy|important|security|e-?mail)?\W{0,3}(?:notice|disclaimer|warning)\W{0,3}(?:$|:|this|the)
    ^\W{0,6}(?:this|the (?:information|contents?) (?:contained )?(?:in|of) this|the information (?:contained|transmitted)|any)\b.{0,60}\b(?:e-?mail|message|communication|transmission|mail|herein)\b.{0,120}\b(?:confidential|privileged|intended|legally|copyright|viruses)
    ^\W{0,6}(?:if you(?: are| have)? (?:not (?:the )?(?:intended|named)|received (?:this|it) (?:e-?mail|message|mail|communication)? ?(?:in|by) (?:error|mistake))|please (?:consider|think (?:of|about)) (?:the|your) (?:environment|planet)|virus-?free\b|(?:this e-?mail (?:has been|was) |scanned )(?:checked|scanned)?\b.{0,40}(?:virus|avast|antivirus)|registered (?:office|in england|address|company)|company (?:no|number|registration)\b|vat (?:no|number|reg))
    ^\W{0,6}(?:sie (?:erhalten|haben|bekommen)\b.{0,60}\b(?:weil|da sie|erhalten, da)|(?:wenn|falls|sollten) (?:sie|du) .{0,100}(?:nicht mehr|keine\b.{0,30}mehr|abmelden|abbestellen).{0,100}(?:hier|klick|link|abmelden|https?:)|(?:um|zum) .{0,60}(?:abzumelden|abzubestellen|abmelden|austragen)|(?:newsletter )?(?:abmelden|abbestellen|austragen)\W{0,4}(?:$|https?:|hier)|(?:newsletter|e-?mails?) (?:abmelden|abbestellen))
    ^\W{0,6}(?:diese (?:e-?mail|nachricht|mail)\b.{0,100}(?:vertraulich|bestimmt|virus|viren)|(?:der|die) inhalt\w* dieser (?:e-?mail|nachricht)|vertraulichkeitshinweis|rechtlicher hinweis|(?:wenn|falls|sollten) sie (?:nicht der (?:richtige|beabsichtigte|vorgesehene)|diese\b.{0,60}(?:irrt[üu]mlich|versehentlich))|bitte (?:denken|pr[üu]fen) sie.{0,40}(?:umwelt|druck)|gesch[äa]ftsf[üu]hr\w*\W{0,3}:|sitz der gesellschaft|amtsgericht \S|(?:hrb|ust-?id\S*)[ :.]{0,3}\S|handelsregister)
    ^\W{0,6}(?:vous (?:recevez|avez re[çc]u) ce.{0,60}(?:car|parce|suite)|(?:pour|si vous (?:ne )?(?:souhaitez|voulez|d[ée]sirez)) .{0,100}(?:d[ée]sabonn|d[ée]sinscri|plus recevoir|ne plus)|(?:se )?(?:d[ée]sabonner|d[ée]sinscrire|d[ée]sinscription)\W{0,4}(?:$|https?:|ici)|g[ée]rer (?:vos|mes) (?:pr[ée]f[ée]rences|abonnements))
    ^\W{0,6}(?:ce (?:message|courriel|mail|courrier)\b.{0,120}(?:confidentiel|destin|virus)|cet e-?mail\b.{0,120}(?:confidentiel|destin|virus)|(?:le contenu|les informations)\b.{0,40}\bcet? (?:message|courriel|e-?mail)|si vous avez re[çc]u ce.{0,40}erreur|(?:avis|avertissement|clause) (?:de )?confidentialit|pensez [àa] l.environnement|avant d.imprimer|sans virus\b|siren\b|siret\b|rcs \S)
    ^\W{0,6}(?:(?:ha )?recib(?:e|es|ido|iste|i[óo])\b.{0,40}(?:porque|ya que)|(?:est[áa]s? )?recibiendo\b.{0,40}porque|(?:para|si no (?:desea|quiere)s?) .{0,100}(?:dar(?:se|te) de baja|dejar de recibir|m[áa]s (?:correos|mensajes|e-?mails)|seguir recibiendo|recibir (?:m[áa]s|estos))|(?:darse|darte|date) de baja\W{0,4}(?:$|https?:|aqu[íi])|cancelar (?:la |mi )?suscripci[óo]n\W{0,4}(?:$|https?:|aqu[íi]))
    ^\W{0,6}(?:este (?:correo|mensaje|e-?mail)\b.{0,140}(?:confidencial|destinatari|dirigid)|aviso (?:legal|de confidencialidad)|si (?:usted )?(?:no es el destinatario|ha recibido este)|antes de imprimir|libre de virus\b|piense en el medio)
    ^\W{0,6}(?:(?:hai|ha|avete) ricevuto quest.{0,40}perch|ricev[ie]\b.{0,40}perch|(?:per|se non (?:desider|vuo|vole)\w*) .{0,100}(?:cancella|disiscri|annulla|(?:pi[ùu]|non) ricevere)|(?:annulla|cancella) (?:l.)?iscrizione\W{0,4}(?:$|https?:|qui)|disiscriviti\W{0,4}(?:$|https?:|qui))
    ^\W{0,6}(?:quest[oa] (?:e-?mail|messaggio|mail|comunicazione)\b.{0,140}(?:riservat|confidenzial|destinatari)|le informazioni contenute|avviso (?:di riservatezza|legale)|se (?:ha|avete) ricevuto quest.{0,40}errore|prima di stampare|privo di virus|rispetta l.ambiente)
    ^\W{0,6}(?:(?:voc[êe] )?(?:est[áa] (?:a receber|recebendo)|recebeu|recebe)\b.{0,40}porque|(?:para|(?:se|caso) n[ãa]o (?:desej|quis|quer|pretend)\w*) .{0,100}(?:descadastr|cancelar|deixar de receber|mais receber|receber mais|continuar a receber|remover)|(?:descadastre-se|cancelar (?:a )?(?:inscri|subscri|assinatura)\S*)\W{0,4}(?:$|https?:|aqui))
    ^\W{0,6}(?:est[ae] (?:e-?mail|mensagem|mail|comunica[çc][ãa]o)\b.{0,140}(?:confidencia|destinat|sigilos)|aviso (?:legal|de confidencialidade)|se (?:recebeu|voc[êe] recebeu|voc[êe] n[ãa]o [ée])\b.{0,60}(?:erro|engano|destinat)|antes de imprimir|livre de v[íi]rus|sem v[íi]rus)
  `;

/** Words of the writer's own voice: a text with them is written by a person, whatever it is about. */
const own_voice =
  /\b(?:i|i[’']m|me|my|we (?:do not|don[’']t|no longer|want|wish|would)|(?:remove|take|want) us|ich|mich|mir|meine?[rnms]?|wir|uns|je|j[’']|moi|mon|mes|nous (?:ne|voul|souhait|désir)|yo|mis?|queremos|deseamos|io|mio|mia|vogliamo|desideriamo|eu|meu|minha|desejamos)\b/iu;

/** The words of a link that lost its address, or what somebody asks for in a line of its own. */
const bare_wish =
  /^\W{0,6}(?:(?:unsubscribe|opt[ -]?out)(?: (?:from|here|at any time|this list|instantly|now|all|our|future|these|this|your|e-?mails?|mailings?|newsletters?|messages?|list)){0,8}|(?:newsletter )?(?:abmelden|abbestellen|austragen)(?: hier)?|(?:se )?(?:d[ée]sabonner|d[ée]sinscrire|d[ée]sinscription)(?: ici)?|(?:darse|darte|date) de baja(?: aqu[íi])?|cancelar (?:la |mi )?suscripci[óo]n(?: aqu[íi])?|(?:annulla|cancella) (?:l.)?iscrizione(?: qui)?|disiscriviti(?: qui)?|descadastre-se(?: aqui)?|cancelar (?:a )?(?:inscri|subscri|assinatura)\S{0,20}(?: aqui)?)\W{0,6}$/iu;
const address_line = /^\W{0,6}(?:https?:|mailto:|www\.|\S{1,64}@\S{1,200}$)/i;

/** Such a line in a text: only the HTML beside it shows whether it is a link. */
export const isBareWish = (line: string): boolean => bare_wish.test(line.slice(0, 400));

/** A wish in a line of its own is a footer where a link or more of a footer stands beside it: else somebody asks for it. */
function isWish(lines: readonly string[], at: number): boolean {
  if (!isBareWish(lines[at] as string)) return false;
  const below = lines.slice(at + 1);
  const next = below.find((line) => line.trim() !== '') ?? '';
  const end = below.findIndex((line) => line.trim() === '');
  const is_linked = address_line.test(next) || below.slice(0, end < 0 ? undefined : end).some(isFooter);
  const above = lines[at - 1] ?? '';
  return !is_linked && !(isImprint(above) && /\d/.test(above));
}

const isFooter = (line: string): boolean =>
  line.length < 2_000 && footer.test(line.slice(0, 400)) && !own_voice.test(line.slice(0, 400));

/** A disclaimer and nothing above it: no word is the writer's own. */
export const isFooterAlone = (lines: readonly string[]): boolean =>
  lines.length > 0 && isFooter(lines[0] as string) && !isWish(lines, 0);

/** Returns whether a line above a footer is the address of a firm, and no sentence. */
const isImprint = (line: string): boolean =>
  line.length < 120 && /[,|·•©]|\d/.test(line) && !/[.!?]["')\]]?$/.test(line.trim());
/** A greeting says nothing yet. */
const greeting =
  /^(?:(?:hi|hello|hey|dear|good (?:morning|day|afternoon)|hallo|guten (?:tag|morgen)|liebe[rs]?|sehr geehrte\S*|bonjour|salut|hola|buenos d[íi]as|buongiorno|ciao|ol[áa]|bom dia)\b[^.?\n]{0,40}|\s)*$/iu;
/** The lines below the first line of a footer belong to it. */
const most_lines_below = 30;

/**
 * The line from which on a text is a footer; its length where it has none. A text that says nothing but that, below a greeting at most, is what somebody
 * wrote.
 */
export function findFooter(lines: readonly string[]): number {
  const from = Math.max(1, lines.length - most_lines_below);
  const found = lines.slice(from).findIndex((line, nth) => isFooter(line) && !isWish(lines, from + nth));
  if (found < 0) return lines.length;
  let first = from + found;
  while (first > 1 && isImprint(lines[first - 1] as string) && lines.slice(0, first - 1).some((line) => line === ''))
    first -= 1;
  return greeting.test(lines.slice(0, first).join('\n')) ? lines.length : first;
}
