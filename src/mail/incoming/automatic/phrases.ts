import { anyOf } from '../message/any_of.ts';

/** Words by which automatic replies are known, in English, German, French, Spanish, Italian and Portuguese, and the prefixes of some more. */

/** Begins of subjects that mail servers and programs set, and no person writes. */
export const subject_prefixes = anyOf`
    your (?:message|post|mail) to .{1,80} (?:awaits|is awaiting|is pending|held for) (?:moderat|approv)|(?:message|post) (?:pending|awaiting|held for) (?:approval|moderation)
    automatic (?:reply|response|answer|message|e-?mail)
    auto(?:mated)?[- ]?(?:reply|response|responder|answer|notification|message)|auto ?:|autoreply|out of (?:the )?office|\booo\b
    vacation (?:responder|reply|notice|message|auto)|away from (?:the |my )?(?:office|desk|mail)
    on (?:annual |holiday |maternity |paternity |parental )?(?:leave|vacation)\b|absence (?:notice|notification)
    i am (?:currently )?(?:out|away)|automatische (?:antwort|abwesenheits|r[uü]ckantwort|nachricht|e-?mail)|abwesenheits|abwesend
    au(?:ß|ss)er haus|nicht im (?:b[uü]ro|haus)|autom\. antwort|urlaub(?:snotiz|smeldung|svertretung|sbenachrichtigung)?\b
    eingangsbest[aä]tigung|empfangsbest[aä]tigung|r[eé]ponse automatique|message automatique|absence du bureau|message d.absence
    absent(?:e)? (?:du bureau|jusqu)|accus[eé] de r[eé]ception|notification d.absence|en cong[eé]s?\b|\(?r[eé]ponse auto
    respuesta (?:autom[aá]tica|autom)|mensaje autom[aá]tico|fuera de (?:la )?oficina|ausencia|ausente|de vacaciones
    acuse de recibo|autorrespuesta|contestaci[oó]n autom|risposta automatica|messaggio automatico|fuori (?:sede|ufficio)
    assen(?:te|za)|in ferie|risponditore automatico|conferma di ricezione|avviso di assenza|resposta autom[aá]tica
    mensagem autom[aá]tica|fora do escrit[oó]rio|aus[eê]ncia|em f[eé]rias|aviso de f[eé]rias|confirma[cç][aã]o de rece[bp]
    resposta auto|ausente do escrit[oó]rio|autosvar|automatis(?:k svar|ch antwoord|kt svar)|afwezig|fr[aå]nvaro
    automaattinen vastaus|odpowied[zź] automatyczna|autoodpowied|автоответ|автоматический ответ|自動(?:応答|返信)|自动回复|自動回覆
    otomatik yan[ıi]t|automatick[aá] odpov|automatikus v[aá]lasz|r[aă]spuns automat|automatski odgovor|samodejni odgovor|αυτόματη απάντηση|автоматична відповід
    (?:message |e-?mail )?recall(?: (?:success|failure|report))? ?:|message recall\b|(?:nachrichten)?r[uü]ckruf ?:|nieobecno[sś][cć]|poza biurem|jestem na urlopie|irod[aá]n k[ií]v[uü]l|szabads[aá]gon|absen[tț][aă]|ofis d[ıi][sş][ıi]nda
    poissaolo|poissa\b|ikke (?:til stede|p[aå] kontoret)|uten ?for kontoret|ej p[aå] kontoret|utanf[oö]r kontoret|mimo kancel|nep[rř][ií]tomn|odsutn|odsoten|вне офиса|нет на месте|не в офис|εκτός γραφείου|不在|休暇|休假|부재
  `;

/** The `subject_prefixes` of absences. */
export const absence_subjects = anyOf`
    out of (?:the )?office|\booo\b|vacation|\bleave\b|away from|absen|abwesen|urlaub|nicht im|au(?:ß|ss)er haus|cong[eé]s?\b|fuera de|ausen|ausên|ferie|férias|fuori|assen|fora do|afwezig|fr[aå]nvaro|nieobecn|poza biurem|urlopie|irod[aá]n|szabads|absen[tț]|ofis d|poissa|ikke (?:til|p)|kontoret|mimo kancel|p[rř][ií]tomn|odsut|odsoten|офис|нет на месте|εκτός|不在|休暇|休假|부재
  `;

/** Subjects of receipts, which need a word more from the text. */
export const receipt_subjects = anyOf`
    (?:ticket|case|request|enquiry|inquiry|message|e-?mail|submission|application)s? (?:#?[\w-]+ )?(?:has been |was |is )?(?:received|created|opened|logged|registered|acknowledg)
    we (?:(?:have|.ve) )?(?:got|received) your
    thank(?:s| you) for (?:contacting|your (?:message|e-?mail|enquiry|inquiry|request|interest|submission)|reaching|writing|getting in touch|e-?mailing)
    ticket[^a-z]{0,3}(?:id|#|no|received|created|opened)|\[(?:ticket|case|request|#)[^\]]{0,30}\]|^\[?#\d{3,}|delivery: challenge
    confirm your (?:message|e-?mail)|unmonitored|ihre (?:anfrage|nachricht|e-?mail)(?: vom| ist| wurde|:| an)
    vielen dank f[uü]r ihre|ticket|votre (?:demande|message)|merci (?:de nous avoir|pour votre)|hemos recibido
    gracias por (?:contactar|su|tu|escribir)|abbiamo ricevuto|grazie per (?:averci|la (?:sua|tua))|recebemos (?:a )?(?:sua|o seu)
    obrigado (?:por|pelo)|automatic message|do-?not-?reply
  `;

/** Subjects of receipts of reading: `Read: Our program`, as Outlook writes them in each language. */
export const read_subjects =
  /^\s*(?:(?:not read|read|nicht gelesen|ungelesen|gelesen|non lu|lu|no le[íi]do|le[íi]do|non letto|letto|n[ãa]o lid[ao]|lid[ao]|niet gelezen|gelezen|ol[äa]st|l[äa]st|l[æe]st|lest|luettu|przeczytano|przeczytane|p[řr]e[čc]teno|olvasott|elolvasva|citit|okundu|прочитано|прочетено|开封|已读|已讀|開封済み|읽음) ?[:：]|(?:read|return) receipt\b|lesebest[äa]tigung|(?:accus[ée]|confirmation) de lecture|confirmaci[óo]n de lectura|conferma di lettura|confirma[çc][ãa]o de leitura)/iu;

/** Sentences of read receipts. */
export const read_sentences = anyOf`
    this is a return receipt for the (?:mail|message)
    your message\b[^!?]{0,300} (?:was|has been) (?:read|displayed|deleted without being read) (?:on|at)\b
    (?:ihre|deine) nachricht\b[^!?]{0,300} wurde (?:am|um)\b[^!?]{0,60} gelesen|votre message\b[^!?]{0,300} a [ée]t[ée] lu (?:le|[àa])\b
    (?:su|tu) mensaje\b[^!?]{0,300} (?:fue|ha sido) le[íi]do el|(?:suo|tuo|vostro) messaggio\b[^!?]{0,300} [èe] stato letto (?:il|alle)|sua mensagem\b[^!?]{0,300} foi lida (?:em|[àa]s|no)
  `;

/** Sentences that newsletters, surveys and ticket systems send to everybody. A person may write them too: somebody should look at it. */
export const template_sentences = anyOf`
    how would you rate|rate (?:your|our|the) (?:experience|support|service|conversation)|how did we do\b|take (?:our|this|a) (?:short |quick )?survey
    thank(?:s| you) for (?:signing up|subscribing|registering)|you can unsubscribe (?:at any ?time|here)|confirm (?:your (?:subscription|registration|e-?mail address)|that you (?:want|wish) to be added)
    (?:ticket|case|request)(?: #?\d{1,12})? (?:has been|was|is now) (?:closed|solved|resolved|rejected)|request to mailing list|spamcop
    (?:view|open) (?:this (?:e-?mail|message) )?in (?:your|a) browser|newsletter (?:best[äa]tigen|anmeldung)|bewerten sie (?:unseren|ihre)|confirmez votre (?:inscription|adresse)|confirm[ae] (?:su|tu|la tua|sua) (?:suscripci[óo]n|iscrizione|inscri[çc][ãa]o)
  `;

/** Sentences that say of themselves that nobody wrote them. */
export const automatic_sentences = anyOf`
    (?:this is|this was) (?:an? )?(?:auto(?:matic|mated)?(?:ally)?)[- ]?(?:generated)?[ -]?(?:message|response|reply|e-?mail|notification|acknowledg|confirmation|receipt|autoreply|auto-reply)
    (?:automated|automatic|auto)[- ]?(?:response|reply|message|e-?mail)\b[^.]{0,30}(?:please|do not|$|\*|\)|\])
    (?:message|e-?mail|reply|mail) (?:was|is|has been) (?:sent |generated |created )(?:out )?automatically
    automatically generated|auto-?generated (?:message|reply|e-?mail)|set to (?:automatic|auto)[- ]?reply
    sent by (?:a )?(?:robot|bot|autoresponder|machine)|autoresponder|would like to recall the message
    (?:please )?do not (?:reply|respond) (?:directly )?to this (?:e-?mail|message|mail)
    (?:this )?(?:mail ?box|inbox|address|e-?mail address|account) is (?:not|no longer|un)[ -]?(?:being )?(?:monitored|attended|read|checked|staffed)
    replies (?:to this (?:address|e-?mail|message|mailbox) )?are (?:not (?:read|monitored)|deleted|discarded)
    (?:message|post(?:ing)?|e-?mail|mail)\b[^.!?]{0,80} (?:await|pending|held for|queued for|requires?|waiting for)\w{0,4} (?:the )?(?:list )?(?:moderat|(?:owner|administrator).{0,3} approv|approval)|being held until the (?:list )?moderator|post by non-?members? to
    (?:nachricht|beitrag|mail)\b[^.!?]{0,60} (?:freigabe|genehmigung|moderat)|message\b[^.!?]{0,60} attente (?:d.approbation|de mod[ée]ration|de validation)|mensaje\b[^.!?]{0,60} (?:pendiente|espera) de (?:aprobaci|moderaci)|messaggio\b[^.!?]{0,60} attesa di (?:approvazione|moderazione)|mensagem\b[^.!?]{0,60} (?:aguarda\w{0,3}|pendente de) (?:aprova|modera)
    unmonitored (?:mail ?box|inbox|address)|to add additional comments, reply|being held because you
    to release (?:it|your message)|known senders
    (?:dies(?:e|es)? (?:ist eine|nachricht|e-?mail|mail)|diese antwort)[^.]{0,60} automatisch
    automatisch (?:generiert|erstellt|erzeugt|versendet|versandt|verschickt)
    bitte (?:antworten sie )?nicht auf diese (?:e-?mail|nachricht|mail)
    ihre e-?mails? (?:wird|werden) nicht (?:weitergeleitet|gelesen)
    automatische (?:antwort|abwesenheitsnotiz|r[uü]ckantwort|empfangsbest)|sehen sie von r[uü]ckfragen ab
    (?:ceci est|il s.agit d).{1,5}(?:un |une )?(?:message|r[eé]ponse|e-?mail|courriel|mail) automatique
    message (?:g[eé]n[eé]r[eé]|envoy[eé]) automatiquement
    (?:merci de )?ne pas r[eé]pondre [aà] ce(?:t)? (?:message|e-?mail|mail|courriel)|r[eé]ponse automatique
    bo[iî]te (?:mail |de r[eé]ception )?n.est pas (?:surveill|consult|relev)
    (?:este es un|esta es una|este) (?:mensaje|respuesta|correo)[^.]{0,30} autom[aá]tic|generado autom[aá]ticamente
    (?:por favor,? )?no responda a este (?:mensaje|correo|e-?mail)|respuesta autom[aá]tica|no conteste a este
    (?:questo [eè] un|questa [eè] una|questo) (?:messaggio|risposta|e-?mail)[^.]{0,30} automatic|generat[oa] automaticamente
    (?:si prega di )?non rispondere a quest[oa] (?:messaggio|e-?mail|mail)|risposta automatica|casella non (?:[eè] )?presidiata
    (?:esta [eé] uma|este [eé] um|esta|este) (?:mensagem|resposta|e-?mail)[^.]{0,30} autom[aá]tic|gerad[oa] automaticamente
    (?:por favor,? )?n[aã]o responda a est[ea] (?:mensagem|e-?mail)|resposta autom[aá]tica|automatiskt (?:svar|meddelande)
    automatisch (?:bericht|antwoord)
  `;

/** Absence: what is said, each group one sign. Two of different groups are more than chance. */
export const absence_signs: RegExp[] = [
  anyOf`
    out of (?:the )?office
    (?:i am|i.m|i will be|we are|we.re) (?:currently |now |still )?(?:away|on (?:annual |parental |maternity |paternity |sick |medical |study |holiday )?(?:leave|vacation|holidays?|sabbatical)|travell?ing|out until|not in the office|at a (?:trade|conference))
    ^(?:on (?:vacation|leave|holiday)|away|closed)\b|(?:is|are) closed (?:for|until|from)|only open this inbox
    off (?:at|until|for)\b[^.]{0,40} until
    (?:bin|sind|ist)[^!?]{0,80}(?:nicht (?:im b[uü]ro|im haus|erreichbar|am platz|anwesend)|abwesend|im urlaub|au(?:ß|ss)er haus|in elternzeit|im mutterschutz|auf (?:dienst)?reise|verreist)
    betriebsferien|befinde mich[^.]{0,60}(?:urlaub|elternzeit|reise)|haben (?:wir )?geschlossen
    (?:suis|serai|sommes)[^.]{0,60}(?:absent|en cong|en vacances|en d[eé]placement|hors du bureau|indisponible|pas disponible)
    actuellement (?:absent|en cong)|(?:bureau|r[eé]daction|soci[eé]t[eé])[^.]{0,30} ferm[eé]
    (?:estoy|estar[eé]|me encuentro|estamos|estaremos)[^.]{0,60}(?:fuera de|de vacaciones|ausente|de baja|de viaje|de permiso)
    oficina (?:permanecer[aá] |estar[aá] )?cerrada|no estar[eé] (?:disponible|en la oficina)
    (?:sono|sar[oò]|siamo|saremo)[^.]{0,60}(?:assent|in ferie|fuori (?:sede|ufficio)|in vacanza|in congedo|in maternit|in trasferta)
    uffici[oa] (?:rester[aà] |sar[aà] )?chius
    (?:estou|estarei|encontro-me|estamos|estaremos)[^.]{0,60}(?:ausente|de f[eé]rias|em f[eé]rias|fora do|de licen[cç]a|em viagem|de baixa)
    escrit[oó]rio (?:estar[aá] )?(?:fechado|encerrado)|har semester|ben (?:ik )?(?:afwezig|met vakantie)|ik ben afwezig
  `,
  anyOf`
    (?:no|limited|intermittent|restricted|little|without|sporadic)[^.]{0,20} (?:access|e-?mail)
    not (?:be )?(?:checking|reading|monitoring|have access to)[^.]{0,20} ?(?:e-?mail|mail|messages|inbox)?
    (?:won.t|will not|not) be (?:read|checking|answering|forwarded)|inbox will be checked|keinen zugriff
    nicht (?:weitergeleitet|gelesen|bearbeitet)|eingeschr[aä]nkt(?:en|er)? zugriff|unregelm[aä](?:ß|ss)ig|(?:pas|sans) (?:d.)?acc[eè]s
    acc[eè]s limit|ne (?:seront|sera) pas (?:lu|transf)|(?:no|sin|limitado)[^.]{0,20} acceso|acceso limitado
    accesso (?:limitato|alla posta)|non (?:avr[oò]|ho) (?:accesso|modo)|(?:sem|acesso)[^.]{0,20} (?:acesso|limitado)
    n[aã]o (?:terei|tenho) acesso|inte (?:l[aä]sa|ha tillg)|niet doorgestuurd
  `,
  anyOf`
    (?:urgent|emergenc|time-sensitive|immediate (?:assistance|attention|help)|cannot wait|can.t wait|anything on fire)
    (?:in my absence|while i.m (?:away|out)|covering for me|in the meantime)
    please (?:contact|call|reach out to|e-?mail)\b[^.]{0,60}(?:\+?\d|@)|dringend|in (?:meiner|der) abwesenheit|vertretung
    wenden sie sich|urgen(?:ce|te?s?|cias?|ze|za|ts?)\b|en mon absence|pendant mon absence
    durante (?:mi|la mia|a minha) (?:ausencia|assenza|aus[eê]ncia)|en mi ausencia|contattare|dir[ií]jase|contactar (?:con |o |a )
    br[aå]dskande|bij spoed
  `,
  anyOf`
    (?:will|.ll|shall) (?:get back|respond|reply|answer|return|be back|write back|come back)
    back (?:in the office )?(?:on|in|at|monday|tuesday|wednesday|thursday|friday|thurs|mon|tue|wed|fri)\b|upon my return
    when i (?:return|get back|am back)|return(?:ing)? (?:on|to the office)
    until (?:\d|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|monday|tuesday|wednesday|thursday|friday|saturday|sunday|further)
    (?:nach meiner r[uü]ckkehr|wieder (?:im b[uü]ro|erreichbar|da|f[uü]r sie)|zur[uü]ck (?:am|ab)|bis (?:zum|einschlie|einschl|\d))
    (?:de retour|[aà] mon retour|serai de retour|jusqu.au)|(?:a mi (?:regreso|vuelta)|regreso el|vuelvo el|hasta el|de vuelta)
    (?:al mio (?:rientro|ritorno)|rientr(?:o|er[oò])|fino al|torner[oò])
    (?:ao meu regresso|regresso|retorno|no meu retorno|at[eé] (?:ao? )?dia|voltarei|at[eé] \d)|tillbaka|tot en met|terug op
  `,
];

/** Receipts: what help desks and forms answer. */
export const receipt_sentences = anyOf`
    (?:your|the) (?:request|ticket|case|message|enquiry|inquiry|e-?mail|submission|query)\b[^.]{0,60} (?:has been|have been|was|is) (?:received|created|opened|logged|registered|assigned|queued|forwarded to our)
    (?:support )?ticket has been (?:opened|created)|we(?:.ve| have) received your
    thank(?:s| you) for (?:contacting|reaching out to|getting in touch with|your (?:message|e-?mail|enquiry|inquiry|request))[^.]{0,60}[.!][^.]{0,80}(?:will|aim|within|received|shortly|soon)
    (?:we aim to|will) (?:respond|reply|answer|be in touch|get back to you)[^.]{0,40} within|(?:current )?response time
    ticket (?:id|number|#)|it can take me up to|if you don.t hear (?:back|from us)
    will be (?:reviewed|answered|processed) (?:by|in the order)
    i (?:get|receive) a (?:lot|ton|high volume) of (?:e-?mails|messages)|due to the (?:high )?volume of
    (?:ihre|deine) (?:anfrage|nachricht|e-?mail|mail)[^.]{0,60} (?:erhalten|eingegangen|registriert|erfasst)
    (?:vorgangs|ticket|bearbeitungs|fall)nummer|(?:bearbeitung|beantwortung)[^.]{0,30} (?:dauert|innerhalb|erfolgt)
    schnellstm[oö]glich (?:bei ihnen )?(?:melden|bearbeit|beantwort)
    (?:votre|ton) (?:demande|message|courriel|e-?mail|mail)[^.]{0,60} (?:a (?:bien )?[eé]t[eé] (?:re[cç]u|enregistr|pris)|est bien arriv)
    (?:avons bien re[cç]u|bien re[cç]u votre)|num[eé]ro de (?:dossier|ticket|demande)|dans les (?:plus brefs|meilleurs) d[eé]lais
    nous vous r[eé]pondrons|hemos recibido (?:su|tu)
    (?:su|tu) (?:solicitud|mensaje|consulta|correo)[^.]{0,40} ha sido (?:recibid|registrad|cread)
    n[uú]mero de (?:ticket|caso|incidencia|expediente)|le responderemos|te responderemos
    abbiamo ricevuto (?:la (?:sua|tua|vostra)|il (?:suo|tuo|vostro))
    (?:la (?:sua|tua) richiesta|il (?:suo|tuo) messaggio)[^.]{0,40} (?:[eè] stat[oa]|ricevut|registrat)
    numero di (?:ticket|pratica|richiesta)|le risponderemo|ti risponderemo|recebemos (?:a sua|o seu|sua|seu)
    (?:a sua|o seu|sua|seu) (?:mensagem|pedido|e-?mail|solicita[cç][aã]o|contacto|contato)[^.]{0,60} (?:foi|ser[aá]) (?:recebid|respondid|registad|registrad)
    n[uú]mero (?:do|de) (?:ticket|processo|protocolo|chamado)|n\.º de processo|responderemos (?:em|assim|o mais|no prazo)
  `;
