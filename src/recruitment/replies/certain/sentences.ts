/** Whole sentences, of words in their normal form, that wish for nothing but to get no mormail, refuse, thank, or insult. */

interface Sentences {
  /** Words that change nothing of a sentence, wherever they stand. */
  idle: string;
  /** The person who wishes to be taken off: the writer and their address, and nobody else. */
  me: string;
  list: string;
  mail: string;
  /** `{me}`, `{list}` and `{mail}` stand for the above. */
  wishes: string[];
  /** Phrases that may stand beside a wish: a greeting, thanks, a refusal. */
  beside: string[];
  /** Words that join two sentences. */
  joins: string;
  /** Only `idle` beside a wish, and what makes it anger. */
  rude: string;
  angry: string[];
}

const may = `(?:(?:can|could|would|will) (?:you|u|i|we) (?:mind )?|(?:i|we|id|wed)(?: would| d)? (?:want |wish |ask |request )?(?:like |prefer )?(?:you )?to |(?:i|we) want (?:you )?to |do )?`;

export const sentences: Record<string, Sentences> = {
  en: {
    joins: 'and or but',
    idle: 'please kindly pls plz pleas just now immediately asap today thx ta the your any all further future also hereby simply therefore so completely permanently entirely thanks thank again anymore ever hi hello hey dear team sir madam folks cheers maam rather both kind once at everyone',
    me: '(?:me|us|(?:my|our|this) (?:(?:work|private|personal|business|shop|office|whole|entire) )?(?:mail )?(?:address|addresses|adress|mail|inbox|mailbox|name|contact|contact details|details|data|personal data|entry|information|info|domain))',
    list: '(?:(?:mailing|mail|contact|distribution|marketing|outreach|this|these|those|that|whatever|of) ){0,3}(?:lists?|mailings?|database|db|records?|system|files?|books|register|contacts|mails?|newsletters?|messages|distribution|correspondence|communications?|outreach|list (?:this|it) is)',
    mail: '(?:(?:more|of|this|these|those|such|other|unsolicited|marketing|promotional|additional) ){0,3}(?:mails?|messages?|letters?|newsletters?|contact|correspondence|communications?|mailings?|outreach|offers?|stuff|crap|shit|junk|spam|garbage|rubbish|nonsense|anything|nothing|more|these|this|reminders?|follow ups?|information)',
    wishes: [
      '(?:unsubscribe|unsub|opt out|remove|removal|removal request|delete|erase|stop|opting out|off list|cancel my entry|requesting removal|do not contact|do not mail|do not mail|leave (?:me|us) alone|delist)',
      `${may}(?:remove|removing|delete|deleting|exclude|erase|purge|unsubscribe|unsubscribing|take|taking|strike|cross|drop|scratch|pull|opt) {me}(?: (?:off|out))?(?: (?:off|from|out of|of|on|in) {list})?(?: (?:and confirm|request))?`,
      `${may}(?:keep|leave|get) {me} (?:off|out of) {list}`,
      `${may}(?:be )?(?:unsubscribe|unsubscribed|remove|removed|taken off|delete|deleted|opt out|get off|be off)(?: (?:from|off|out of|of) {list})?`,
      '(?:(?:i|we) would like|(?:id|wed) like|(?:i|we) (?:want|wish|ask|request))(?: to)? (?:unsubscribe|opt out|be (?:removed|unsubscribed|taken off|deleted|left (?:off|out)))(?: (?:from|off|out of|of) {list})?',
      `${may}(?:stop|cease|quit|discontinue|refrain from|end)(?: to)? (?:mailing|mailing|sending|send|contacting|writing|messaging|bothering|spamming|write)(?: to)?(?: {me})?(?: {mail})?(?: to {me})?`,
      `${may}(?:stop|cease|discontinue|end) {mail}(?: to {me})?`,
      '(?:do not|dont|never|not) (?:mail|mail|contact|write|write to|message|bother)(?: to)? {me}(?: (?:more|any longer|in|on this matter|about this|with {mail})){0,2}',
      '(?:do not|dont|never|not) send(?: {me})? {mail}(?: (?:to {me}|in|about this|from you))?',
      '(?:no|no more|no further)(?: more)? {mail}(?: (?:to {me}|from you|required|needed|wanted|in))?',
      '(?:i|we) (?:do not|dont|no longer|never)(?: (?:want|wish|care|like|need))?(?: to)? (?:want|get|receive|hear|have|be (?:contacted|mailed|on {list}))(?: {mail})?(?: (?:from|by) you)?(?: at {me})?',
      '(?:i|we) (?:do not|dont|no longer) (?:want|need) (?:more|these|such|this) {mail}(?: from you)?',
      '(?:i|we|id|wed)(?: (?:would|d|ll))? (?:not|prefer not to|rather not) (?:get|receive|be (?:contacted|mailed))(?: {mail})?(?: (?:from|by) you)?',
      '(?:add|put) {me} (?:to|on) (?:do not contact|suppression|blacklist|black|block|unsubscribe) ?(?:list)?',
    ],
    beside: [
      '(?:fuck|you|you people|you are|this is|this is pure|enough|enough is enough|no means no|for last time)',
      '(?:no|nope|sorry|not interested|not for (?:me|us)|(?:i am|im|we are|were) not interested(?: in (?:this|it|these|that|offer|program|partnership|mails|mails))?|im not interested|were not interested|no interest|not (?:my|our) thing|no offence|no offense|no hard feelings|nothing personal)',
      '(?:you|many|(?:you )?(?:very much|so much|a lot|in advance|ever so much)|(?:you )?(?:very much )?for (?:your |this )?(?:understanding|time|help|offer|mail|mail|message|cooperation|writing|reaching out|asking|thinking of (?:me|us)))',
      '(?:good (?:morning|day|afternoon|evening|luck)|(?:many|best|warm|kind)? ?(?:regards|wishes)|best|sincerely|yours (?:faithfully|sincerely|truly)|all best|to whom it may concern|have a (?:nice|good|great|lovely) (?:day|week|weekend|evening)|best of luck|god bless|bye)',
    ],
    rude: 'fucking fuckin damn damned goddamn bloody stupid filthy bastards bastard idiots idiot morons moron crooks spammers spammer scammers scammer assholes asshole shit crap spam junk scum pricks shitty garbage rubbish jerks jerk clowns',
    angry: [
      '(?:fuck you|piss off|fuck off|f off|go to hell|get lost|shut up|screw you|shame on you|how dare you|leave (?:me|us) alone|go away|last warning)',
      '(?:i|we|im|ill)(?: (?:am|are|will|shall))?(?: be)? (?:report|reporting|sue|suing|block|blocking)(?:ed)? (?:you|this|it|you for)(?: for| as| to| to police)?',
      '(?:i|we|im|ill)(?: (?:am|are|will|shall))?(?: be)? (?:calling|call|contacting|contact) (?:my|our|a) (?:lawyers?|solicitors?|attorneys?)',
      '(?:you will|youll|expect to) hear from (?:my|our) (?:lawyers?|solicitors?|attorneys?)',
      '(?:reported|reporting|reported you|reporting you)(?: as| for)?(?: you)?',
      '(?:stop|quit) (?:harassing|bothering|pestering|spamming|stalking) (?:me|us)',
      'this is (?:harassment|illegal|a disgrace|disgusting|pathetic|outrageous|abuse)',
    ],
  },
  de: {
    joins: 'und oder aber sowie',
    idle: 'bitte danke sofort umgehend jetzt mal doch einfach auch hiermit daher bitten den dem der die das ihrer ihrem ihren eurer eurem euren deiner deinem deinen ihre eure deine kunftig zukunftig zukunft in endlich gleich dringend alle allen jegliche besten vielen herzlichen dank hallo moin guten tag lieber gern freundlich vollstandig komplett endgultig schnellstmoglich unverzuglich dauerhaft einmal so einfach hochst freundlicherweise',
    me: '(?:mich|uns|(?:meine|unsere|diese|mein|unser|dieses|meiner|unserer|dieser)(?: (?:personlichen|kontakt|mail|mail|mail))? (?:adressen?|mailadresse|mail adresse|mail|daten|kontaktdaten|kontakt|postfach|domain))',
    list: '(?:verteilern?|mailverteiler|mail verteiler|listen?|mailingliste|mailing liste|mail liste|adressliste|datenbank|kartei|newsletter|system|kontakten|adressbestand|bestand|unterlagen|mailing)',
    mail: '(?:(?:mehr|weiteren?|solchen?|solcher|diese|dieser|derartigen?|solche) ){0,2}(?:mails?|nachrichten?|newsletter|werbung|werbmails|post|zusendungen|angebote|anfragen|anschreiben|infos|nichts|scheisse?|mull|schrott|spam)(?: mehr)?',
    wishes: [
      '(?:abmelden|abmeldung|abbestellen|austragen|loschen|entfernen|streichen|stop|stopp|raus|rausnehmen|loschung)',
      '(?:(?:ich|wir) (?:mochten?|wollen|will|bitten?) |(?:ich|wir) bitten? (?:sie|euch|dich)?(?: darum)? )?(?:mich|uns)? ?(?:(?:von|aus|vom) {list} )?(?:abmelden|abzumelden|austragen|auszutragen)',
      '(?:(?:konnen|konnten|wurden|konnt|konntet|kannst|konntest|wurdet) (?:sie|ihr|du) )?{me}(?: da)?(?: (?:aus|von|vom)(?: {list})?)? (?:loschen|entfernen|streichen|nehmen|rausnehmen|herausnehmen|austragen|rausloschen|zu loschen|zu entfernen|zu streichen|zu nehmen|herauszunehmen|abmelden|rauswerfen)',
      '(?:loschen|loscht|losch|losche|entfernen|entfernt|entferne|streichen|streicht|streich|streiche)(?: sie)? {me}(?: da)?(?: (?:aus|von|vom)(?: {list})?)?(?: (?:raus|heraus))?',
      '(?:nehmen|nehmt|nimm|tragen|tragt|trag|melden|meldet|meld|werfen|werft|schmeissen|schmeisst)(?: sie)? {me}(?: da)?(?: (?:aus|von|vom) {list}(?: (?:raus|heraus|aus|ab))?| (?:raus|heraus|aus|ab))',
      '(?:aus|von|vom|raus aus)? ?{list} (?:loschen|entfernen|streichen|nehmen|austragen|abmelden|abbestellen|raus)',
      '(?:raus aus|weg von) {list}',
      'kein(?:e|en)? {mail}(?: (?:an {me}|senden|schicken|zusenden|von ihnen|von euch))?',
      '(?:ich|wir) (?:mochten?|wollen|will|wunschen?)(?: (?:von ihnen|von euch|lieber))? (?:keine|keinerlei) {mail}(?: (?:von ihnen|von euch|mehr)){0,2}(?: (?:erhalten|bekommen|haben|empfangen))?',
      '(?:ich|wir) (?:mochten?|wollen|will) (?:(?:von ihnen|von euch|diese|{mail}) ){0,3}nicht mehr (?:(?:von ihnen|von euch) )?(?:erhalten|bekommen|haben|kontaktiert werden|angeschrieben werden|horen|belastigt werden)',
      '(?:nicht mehr|nie wieder|nichts mehr|nie mehr) (?:schreiben|anschreiben|kontaktieren|schicken|senden|zusenden|melden|mailen)',
      '(?:schreiben|schreibt|schreib|kontaktieren|kontaktiert|kontaktiere|mailen) (?:sie )?(?:mich|mir|uns) (?:nicht mehr|nie wieder|nie mehr)(?: an)?',
      '(?:schicken|schickt|schick|senden|sendet|sende) (?:sie )?(?:mir|uns) (?:nichts mehr|keine {mail})(?: zu)?',
      '(?:horen|hort|hor) (?:sie )?auf(?: (?:mir|uns))?(?: {mail})? zu (?:schreiben|schicken|senden|belastigen|kontaktieren)',
      '(?:ich|wir)? ?widerspr(?:eche|echen)(?: ich| wir)? (?:nutzung|verwendung|verarbeitung|speicherung) (?:meiner|unserer) (?:daten|adresse|mail adresse)(?: zu werbezwecken)?',
      '(?:ich |wir )?um loschung(?: (?:meiner|unserer) (?:daten|adresse|mail adresse))?(?: aus {list})?',
      'lassen sie (?:mich|uns) in ruhe|lasst (?:mich|uns) in ruhe',
    ],
    beside: [
      '(?:ihr|sie|ihr seid|sie sind|das ist|(?:es )?reicht(?: mir)?|schluss(?: damit)?)',
      '(?:nein|kein interesse|kein bedarf|(?:ich|wir) haben? (?:leider )?(?:kein interesse|keinen bedarf)|nicht interessiert|(?:ich|wir) (?:bin|sind) nicht interessiert|nichts fur ungut|sorry|leider)',
      '(?:(?:mit )?(?:freundlichen?|schonen?|viele|liebe|beste|herzliche) (?:grussen?|gruss)|mfg|lg|vg|grusse?|(?:sehr geehrte[rs]?|liebes?) (?:damen|herren|damen herren|team|damen und herren)|sehr geehrte|herren|damen|(?:fur )?(?:verstandnis|muhe)|im voraus|euch|ihnen|dir|schonen(?: noch| abend)?|alles gute|viel erfolg|vorab|schon)',
    ],
    rude: 'verdammten verdammte verdammt verdammter scheiss scheisse scheissverteiler scheissmails idioten idiot arschlocher arschloch spammer penner trottel deppen mull schrott spam betruger abzocker scheissdreck',
    angry: [
      '(?:verpiss(?:t)? (?:dich|euch)|(?:so |was fur )?eine (?:frechheit|unverschamtheit|zumutung|sauerei)|frechheit|unverschamtheit|zumutung|unverschamt|leck(?:t)? mich(?: am arsch)?|schamt euch|schamen sie sich)',
      '(?:sonst |ansonsten )?(?:(?:ich|wir) )?(?:schalten?|zeigen?|melden?|verklagen?|schalte) ?(?:ich |wir )?(?:(?:meinen|unseren|einen) anwalt|sie|euch|anwalt)(?: (?:ein|an))?',
      '(?:horen|hort) (?:sie )?auf (?:mich|uns) zu (?:belastigen|nerven|spammen)',
      '(?:sie|ihr) (?:horen|hort) von (?:meinem|unserem) anwalt',
    ],
  },
  fr: {
    joins: 'et ou mais',
    idle: 'merci svp s il vous te plait plais bien vouloir immediatement maintenant tout de suite donc bonjour bonsoir madame monsieur toute toutes tous vos votre tes ta ton veuillez priere d des du la le les ces cette cet aussi simplement definitivement urgence desormais dorenavant avenir a l possible rapidement cher chere equipe beaucoup avance par',
    me: '(?:moi|nous|(?:mon|mes|notre|nos|cette|cet|ma)? ?(?:adresse|adresses|mail|coordonnees|donnees|contact|nom|boite|domaine)(?: (?:mail|personnelles))?)',
    list: '(?:listes?(?: (?:diffusion|envoi|mailing|contacts))?|mailing|mailings|mailing listes?|fichiers?|base|bases|base donnees|bases donnees|envois|contacts|destinataires|newsletter|communications|registres|mails|mails)',
    mail: '(?:(?:autres|ce type|ce genre|genre) ){0,2}(?:mails?|messages?|courriels?|courriers?|rien|envois?|publicites?|pub|newsletters?|sollicitations?|propositions?|offres?|merde|spam|spams|conneries)(?: (?:part|ma part|vous|ce type|ce genre))?',
    wishes: [
      '(?:desinscription|desabonnement|desabonner|desinscrire|stop|(?:me|se|nous) (?:desinscrire|desabonner|retirer|supprimer)|supprimer|suppression|desinscrivez|retirez|supprimez|desabonnez)',
      '(?:(?:je|on|nous) (?:veux|voudrais|souhaite|souhaiterais|desire|voulons|souhaitons|aimerais|desirons) |(?:pouvez|pourriez|peux|pourrais) (?:vous|tu)? ?|(?:je )?prie )?(?:me|m|nous) (?:desinscrire|desabonner|retirer|supprimer|enlever|oter|rayer|sortir|effacer|exclure)(?: (?:en|dans|sur)? ?{list})?',
      '(?:(?:pouvez|pourriez|peux|pourrais) (?:vous|tu)? ?)?(?:retirer|supprimer|effacer|enlever|rayer|oter|exclure|desinscrire|desabonner) {me}(?: {list})?',
      '(?:retirez|supprimez|effacez|enlevez|rayez|otez|excluez|desinscrivez|desabonnez|sortez|retire|supprime|enleve|efface|desinscris|virez) {me}(?: {list})?',
      '(?:(?:je|on|nous) (?:veux|voudrais|souhaite|desire|voulons|souhaitons|aimerais) )?etre (?:retire|retires|retiree|raye|rayee|supprime|supprimee|desinscrit|desinscrite|desabonne|desabonnee|enleve|enlevee)e?s?(?: {list})?',
      'ne plus (?:me |m |nous )?(?:ecrire|contacter|envoyer|solliciter|deranger|adresser)(?: {mail})?(?: {me})?',
      'ne (?:me |m |nous )?(?:ecrivez|contactez|envoyez|sollicitez|derangez|ecris|contacte|envoie) (?:plus|pas)(?: {mail})?(?: rien)?',
      'n (?:ecrivez|envoyez) plus(?: {mail})?(?: (?:me|m|nous|moi))?',
      '(?:je|on|nous) (?:ne )?(?:souhaite|veux|desire|souhaitons|voulons|veut|desirons) (?:plus|pas) (?:(?:recevoir|avoir) {mail}|etre (?:contacte|contactee|contactes|sollicite|sollicitee|demarche|sur liste|dans liste))',
      '(?:plus|pas)(?: plus)? {mail}|plus jamais {mail}',
      '(?:arretez|cessez|arrete|cesser)(?: (?:m|me|nous))?(?: (?:ecrire|envoyer|contacter|envois|solliciter|mails|spammer|harceler))?(?: {mail})?',
    ],
    beside: [
      '(?:bande|ca suffit|c est)',
      '(?:non|pas interessee?|pas interesses|(?:cela|ca) (?:ne )?(?:m|nous) interesse pas|(?:je|nous) (?:ne )?(?:suis|sommes) pas interessee?s?|desolee?|sans interet)',
      '(?:comprehension|pour comprehension|et|cordialement|bonne (?:journee|continuation|soiree|chance|fin journee)|bien|salutations|(?:sinceres|meilleures) salutations|au revoir|bon courage|infiniment|salut|pour (?:message|proposition|offre))',
    ],
    rude: 'putain merde putains foutu foutue connards connard idiots idiot abrutis spam spams spammeurs escrocs arnaqueurs conneries salauds cons',
    angry: [
      '(?:(?:va|allez) (?:te|vous)? ?faire foutre|foutez moi paix|fichez moi paix|foutez nous paix|laissez moi tranquille|quelle honte|honte|c est honteux|stop harcelement|c est harcelement|y en a marre|j en ai marre)',
      '(?:sinon )?(?:je|nous) (?:porte|porterai|portons|vais porter|signale|signalerai) (?:plainte|cnil|comme)',
      '(?:arretez|cessez) (?:me|m|nous) (?:harceler|spammer|emmerder)',
    ],
  },
  es: {
    joins: 'y o pero',
    idle: 'por favor porfavor porfa pf gracias muchas ya ahora mismo inmediatamente hola buenos buenas dias tardes estimados estimado senores el la los las lo de del su sus vuestra vuestro vuestras vuestros tu tus todo todos todas solo simplemente cuanto antes equipo cordialmente tambien definitivamente favor ruego rogamos pido pedimos solicito solicitamos adelante futuro que agradeceria agradeceriamos les le os te',
    me: '(?:(?:mi|mis|nuestro|nuestra|nuestros|esta|este|a)? ?(?:direccion|direcciones|correo|correos|correo electronico|mail|datos|datos personales|contacto|nombre|buzon|dominio)(?: (?:correo|mail|mail|electronico))?)',
    list: '(?:listas?(?: (?:correo|correos|distribucion|contactos|envio|envios|mailing))?|base datos|bases datos|base|ficheros|envios|comunicaciones|contactos|destinatarios|newsletter|boletin|registros|archivos|sistema|mailing|correos)',
    mail: '(?:(?:mas|este tipo|estos|este|otros|nada) ){0,2}(?:correos?|mails?|mensajes?|nada|envios?|publicidad|propaganda|newsletters?|comunicaciones|ofertas|informacion|contacto|mierda|basura|spam)(?: (?:mas|suyos|vuestros|ustedes|parte|este tipo))?',
    wishes: [
      '(?:baja|stop|darme baja|dar baja|darnos baja|cancelar suscripcion|eliminar|borrar|desuscribir|desuscribirme|remover|eliminarme|borrarme|quitarme|baja lista|baja {list})',
      '(?:(?:quiero|quisiera|deseo|queremos|deseamos|me gustaria|quiero) )?(?:darme|darnos|dar|denme|dadme|deme|dame|dennos|dadnos|den me)(?: me)? baja(?: (?:en )?{list})?',
      '(?:(?:podrian|podeis|podriais|pueden|puede|podria|puedes|podrias) )?(?:me |nos )?(?:quiten|quitad|quite|quita|saquen|saque|sacad|saca|borren|borrad|borre|borra|eliminen|eliminad|elimine|elimina|retiren|retirad|retire|retira|excluyan|excluya|supriman|suprima|quitar|sacar|borrar|eliminar|retirar|remuevan|remueva|den baja|dar baja)(?:me|nos)?(?: {me})?(?: {list})?',
      '(?:quitenme|quitadme|quiteme|quitame|saquenme|saqueme|sacadme|sacame|borrenme|borradme|borreme|borrame|eliminenme|eliminadme|elimineme|eliminame|retirenme|retireme|excluyanme|desuscribanme|desuscribirme|quitennos|saquennos|borrennos|eliminennos|quitarme|sacarme|borrarme|eliminarme)(?: {list})?',
      'no (?:me |nos )?(?:enviasen|enviaran|mandaran|escribieran|contactaran|envien|enviad|envieis|envie|manden|mandeis|mande|mandes|escriban|escribais|escriba|escribas|contacten|contacteis|contacte|contactes|vuelvan a escribir|vuelvan a contactar|vuelva a escribir|vuelvan a contactarme|vuelvan a escribirme)(?: (?:mas|nunca|nada))?(?: {mail})?(?: a {me})?',
      '(?:(?:yo )?no (?:quiero|deseo|queremos|deseamos|quisiera)|prefiero no|preferimos no) (?:recibir {mail}|ser contactad[oa]|seguir (?:en lista|recibiendo {mail})|que (?:me|nos) (?:escriban|contacten)|me (?:escriban|contacten|envien) mas)',
      '(?:no mas|nada|sin mas|ni un) {mail}|no mas',
      '(?:dejen|deja|dejad|paren|parad|cesen)(?: (?:enviarme|mandarme|escribirme|contactarme|enviar|mandar|escribir|enviarnos|escribirnos))(?: {mail})?',
      'supresion (?:mis )?(?:datos|direccion)',
    ],
    beside: [
      '(?:(?:vete|vayanse|iros) a|basta|panda|harto|esto es)',
      '(?:no|no (?:me|nos) interesa|no estoy interesad[oa]|no estamos interesad[oa]s|sin interes|lo siento|lo sentimos|perdon)',
      '(?:un (?:cordial )?(?:saludo|abrazo)|saludos(?: cordiales)?|atentamente|un|suerte|mucha suerte|antemano|comprension|buen dia|y)',
    ],
    rude: 'puta putos puto maldita maldito mierda idiotas idiota cabrones cabron estafadores spam basura imbeciles gilipollas',
    angry: [
      '(?:dejenme en paz|dejadme en paz|dejame en paz|dejennos en paz|verguenza|que (?:verguenza|poca verguenza)|sinverguenzas|estoy hart[oa]|esto es acoso)',
      '(?:o )?(?:os|les|los)? ?(?:denuncio|denunciare|voy a denunciar(?:los)?)',
      '(?:dejen|dejad) (?:acosarme|molestarme|molestar)',
    ],
  },
  it: {
    joins: 'e o ma',
    idle: 'per favore cortesia piacere gentilezza grazie mille subito immediatamente ora adesso salve ciao buongiorno buonasera gentili gentile spett il lo la i gli le l di del della dei dalla dal dalle dai dagli dello vostra vostro vostre vostri tua tuo sua suo tutte tutti tutto cortesemente pure prego vi si chiedo chiediamo prega invito semplicemente definitivamente anche team signori futuro',
    me: '(?:(?:mio|mia|miei|nostro|nostra|nostri|questo|questa)? ?(?:indirizzo|indirizzi|mail|dati|contatto|nome|nominativo|casella|dominio)(?: (?:mail|personali))?)',
    list: '(?:list[ae]|mailing list|mailing list[ae]|lista (?:contatti|distribuzione|invio)|database|archivi|archivio|contatti|destinatari|invii|newsletter|comunicazioni|registri|elenco|elenchi|mailing)',
    mail: '(?:(?:altre|altri|altro|queste|questi|tipo|ulteriori) ){0,2}(?:mail|messaggi|messaggio|nulla|niente|invii|pubblicita|newsletter|comunicazioni|offerte|proposte|altro|merda|spam|spazzatura)(?: (?:vostri|voi|da voi|tipo))?',
    wishes: [
      '(?:stop|cancellami|cancellatemi|disiscrivetemi|disiscrivimi|cancellazione|annulla iscrizione|disiscrizione|disiscrivermi|cancellarmi|rimuovetemi|rimuovimi|toglietemi|eliminatemi|cancellate|rimuovere|disiscrivere)',
      '(?:(?:vorrei|voglio|desidero|vorremmo) |(?:potete|potreste|puo|potrebbe|puoi) )?(?:a |voler )?(?:cancellarmi|rimuovermi|togliermi|disiscrivermi|eliminarmi|levarmi|cancellarci|rimuoverci|toglierci|disiscriverci|eliminarci)(?: {list})?',
      '(?:cancellatemi|cancellami|toglietemi|toglimi|rimuovetemi|rimuovimi|eliminatemi|eliminami|disiscrivetemi|disiscrivimi|levatemi|levami|depennatemi|mi tolga|mi cancelli|mi rimuova|mi elimini|cancellateci|toglieteci|rimuoveteci|eliminateci)(?: {list})?',
      '(?:(?:potete|potreste|puo|potrebbe|puoi|a|voler) )?(?:cancellate|togliete|rimuovete|eliminate|cancelli|tolga|rimuova|elimini|levate|cancellare|togliere|rimuovere|eliminare|levare|cancella|togli|rimuovi) {me}(?: {list})?',
      '(?:mi )?(?:potete|potreste|puo|potrebbe) (?:togliere|cancellare|rimuovere|levare|eliminare)(?: {list})?',
      'non (?:mi |ci )?(?:inviate|mandate|scrivete|contattate|scriva|mandi|invii|contatti|inviatemi|mandatemi|scrivetemi|contattatemi|scriveteci|contattateci|inviateci|scrivermi|contattarmi|mandarmi|inviarmi)(?: (?:piu|mai piu))?(?: {mail})?',
      '(?:non (?:voglio|desidero|vogliamo|desideriamo|vorrei)|preferisco non|preferirei non) (?:piu )?(?:ricevere (?:piu )?{mail}|essere (?:piu )?contattat[oa]|essere in lista)',
      '(?:basta|niente|nessun|nessuna|non piu)(?: piu)? {mail}|niente piu {mail}',
      '(?:smettete|smettetela|smetta|smettila)(?: (?:inviarmi|mandarmi|scrivermi|contattarmi|inviare|mandare|scrivere))?(?: {mail})?',
      'cancellazione (?:miei |nostri |mio )?(?:dati|indirizzo)',
      '(?:desidero|vorrei|voglio) essere (?:tolt[oa]|cancellat[oa]|rimoss[oa])(?: {list})?',
    ],
    beside: [
      '(?:andate a|basta|ora basta|siete)',
      '(?:no|non (?:mi|ci) interessa|non sono interessat[oa]|non siamo interessati|nessun interesse|mi (?:di)?spiace|scusate|scusi)',
      '(?:(?:cordiali|distinti|cari) saluti|saluti|un saluto|buona (?:giornata|continuazione|serata|fortuna)|buon lavoro|comprensione|anticipo|in anticipo|arrivederci)',
    ],
    rude: 'cazzo merda merde idioti idiota stronzi stronzo coglioni truffatori spam spazzatura maledetta maledetti bastardi imbecilli branco',
    angry: [
      '(?:vaffanculo|lasciatemi in pace|lasciateci in pace|vergogna|vergognatevi|che vergogna|avete rotto)',
      '(?:o |altrimenti )?(?:denuncio|denuncero|segnalo|vi denuncio)',
      '(?:smettete|smettetela) (?:tormentarmi|molestarmi|disturbarmi|rompere)',
    ],
  },
  pt: {
    joins: 'e ou mas',
    idle: 'por favor pfv pf obrigado obrigada obg grato grata agradeco agradecia muito ja agora imediatamente ola oi bom boa dia tarde noite prezados caros o a os as da do das dos de na nas vossa vosso vossas vossos sua seu suas seus toda todas todos favor gentileza se faz simplesmente definitivamente tambem urgente equipa equipe peco pedimos solicito gostaria que desde',
    me: '(?:(?:meu|minha|meus|nosso|nossa|nossos|este|esta)? ?(?:endereco|enderecos|mail|dados|dados pessoais|contato|contacto|nome|caixa|dominio)(?: (?:mail|pessoais))?)',
    list: '(?:listas?(?: (?:mails?|mails?|contactos|contatos|mailing|distribuicao|envio|envios|correio))?|base|base dados|bases dados|banco dados|mailing|envios|contatos|contactos|destinatarios|newsletter|ficheiros|cadastro|sistema|comunicacoes)',
    mail: '(?:(?:mais|outros|outras|esse tipo|este tipo|esses|estes|tipo) ){0,2}(?:mails?|mensagens|mensagem|nada|envios?|publicidade|propaganda|newsletters?|comunicacoes|ofertas|informacoes|contacto|contato|merda|lixo|spam)(?: (?:mais|vossas|vossos|voces|parte))?',
    wishes: [
      '(?:stop|remover|descadastrar|cancelar inscricao|cancelar subscricao|cancelar assinatura|me remova|me remove|me remover|me descadastrar|cancelamento|descadastro|me tira|me tirem|remova|removam|sair lista|parem)',
      '(?:(?:podem|pode|poderiam|poderia|podiam) )?(?:me |nos )?(?:remover|remova|removam|remove|retirar|retirem|retire|retira|tirar|tirem|tire|tira|apagar|apaguem|apague|apaga|eliminar|eliminem|elimine|excluir|excluam|exclua|descadastrar|descadastrem|descadastre|risquem)(?: (?:me|nos))?(?: {me})?(?: (?:em )?{list})?',
      '(?:(?:quero|queria|desejo|queremos|pretendo) )(?:me )?(?:descadastrar|remover|sair|cancelar|ser (?:removid[oa]|retirad[oa]))(?: (?:me|inscricao|subscricao|assinatura))?(?: {list})?',
      '(?:eliminacao|remocao|exclusao) (?:meus |nossos |meu )?(?:dados|endereco|mail|mail)(?: {list})?',
      'nao (?:me |nos )?(?:enviem|envie|envia|mandem|mande|manda|escrevam|escreva|contactem|contacte|contatem|contate)(?: (?:me|nos))?(?: (?:mais|nada)){0,2}(?: {mail})?',
      '(?:nao (?:quero|desejo|queremos|desejamos|pretendo|queria)|prefiro nao|preferia nao) (?:mais )?(?:receber (?:mais )?{mail}|ser (?:mais )?contacta?t?ad[oa]|ser contatad[oa]|ficar lista|estar lista)(?: mais)?',
      '(?:sem mais|chega|nada|nao mais) {mail}|chega',
      '(?:parem|pare|deixem|deixe|para) (?:(?:me )?(?:enviar|mandar|escrever|contactar|contatar|enviarem)(?: me)?)(?: {mail})?',
    ],
    beside: [
      '(?:vai a|vao a|basta|bando|isto e|isso e)',
      '(?:nao|nao tenho interesse|nao temos interesse|nao estou interessad[oa]|nao (?:me|nos) interessa|sem interesse|desculpem?|lamento)',
      '(?:(?:com )?(?:melhores )?cumprimentos|atenciosamente|abracos?|att|felicidades|sorte|compreensao|pela compreensao|pela atencao|trabalho|antecipadamente|tudo)',
    ],
    rude: 'merda porra idiotas idiota caralho spam lixo golpistas imbecis burlões palhacos bando maldita maldito',
    angry: [
      '(?:vai se foder|vao se foder|me deixa em paz|deixem me em paz|me deixem em paz|vergonha|vergonhoso|uma vergonha)',
      '(?:ou )?(?:faco queixa|vou denunciar|vou processar|denuncio|vou processar voces)',
      '(?:parem|pare) (?:me )?(?:perseguir|incomodar|chatear)(?: me)?',
    ],
  },
};
