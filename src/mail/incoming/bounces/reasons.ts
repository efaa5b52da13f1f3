import { anyOf } from '../message/any_of.ts';

/** The texts of servers that refuse a mail, as data: the first group that fits names the reason. */

export type Reason =
  | 'authentication'
  | 'reverse_dns'
  | 'blocked'
  | 'relay'
  | 'sender'
  | 'rate'
  | 'mailbox_full'
  | 'too_large'
  | 'suspended'
  | 'host_unknown'
  | 'no_mail_accepted'
  | 'recipient_rules'
  | 'moved'
  | 'user_unknown'
  | 'content'
  | 'network'
  | 'system';

/** The address or its domain is dead: nobody is to be written to there again. */
export const dead: ReadonlySet<Reason> = new Set(['host_unknown', 'no_mail_accepted', 'moved', 'user_unknown']);

/** The status that stands for a reason where a server wrote none (RFC 3463). */
export const usual_status: Record<Reason, string> = {
  authentication: '5.7.26',
  reverse_dns: '5.7.25',
  blocked: '5.7.1',
  relay: '5.7.1',
  sender: '5.1.8',
  rate: '4.7.0',
  mailbox_full: '5.2.2',
  too_large: '5.3.4',
  suspended: '5.2.1',
  host_unknown: '5.1.2',
  no_mail_accepted: '5.1.10',
  recipient_rules: '5.7.1',
  moved: '5.1.6',
  user_unknown: '5.1.1',
  content: '5.7.1',
  network: '4.4.1',
  system: '5.3.0',
};

const who =
  '(?:user|account|mail ?box|mailbox|mail ?drop|recipient|e-?mail(?: (?:address|account))?|address|addressee|person|alias|inbox)';
/** The same in other languages. */
const who_else =
  '(?:adressat|empf[aä]nger|benutzer|postfach|e-?mail-adresse|adresse|destinataire|utilisateur|usu[aá]rio|destin|direcci[oó]n|cuenta|buz[oó]n|utente|indirizzo|casella|endere[cç]o|conta|caixa|gebruiker|ontvanger|mottagare|anv[aä]ndare|u[zż]ytkownik|adres|пользовател|получател|адрес|ящик)';
const absent_elsewhere =
  '(?:unbekannt|existiert nicht|nicht (?:gefunden|bekannt|vorhanden)|ung[uü]ltig|inconnu|invalide|inexistant|introuvable|pas [eé]t[eé] trouv|n.existe pas|desconocid|no existe|no v[aá]lid|inexistente|no encontrad|no se (?:encuentra|ha encontrado)|sconosciut|inesistente|errat[oa]|non (?:esiste|valid|trovat)|desconhecid|n[aã]o (?:existe|encontrad)|inv[aá]lid|onbekend|bestaat niet|ok[aä]nd|finns inte|nie istnieje|nieznan|не (?:найден|существует|зарегистрирован)|неизвестен|недействител)';

/** In order: what says that the sender is at fault comes before what would say that the recipient is. */
const groups: [Reason, RegExp][] = [
  ['host_unknown', /account or domain may not exist/i],
  [
    'authentication',
    anyOf`
    dmarc|\bspf\b|sender policy framework|\bdkim\b|unauthenticated|(?:not|fails?|failed)[^.]{0,20} authenticat
    authentication (?:checks?|failure|failed|required)|domainkeys
  `,
  ],
  [
    'reverse_dns',
    anyOf`
    \bptr\b|reverse[ -](?:dns|lookup|mapping|host|name|resolution)|\brdns\b|\bfcrdns\b|ip name (?:lookup|possibly)
    unverifiable sending ip|cannot (?:find|resolve) your (?:reverse )?(?:host|address|ip|domain)
    unresolvable (?:relay|client) host|no dns (?:a-?)?(?:record|data)|bogus helo|helo (?:command )?rejected|invalid helo
  `,
  ],
  [
    'blocked',
    anyOf`
    black ?list|block ?list|deny ?list|\b(?:dns|u?ri)?[rx]?bl\b|\bdnsbl|spamhaus|spamcop|\bsorbs\b|cloudmark|senderbase
    reputation|blocked (?:for|using|by|due|because|at|from)|client host|host (?:network )?(?:rejected|not allowed|blocked)
    (?:your|source|sending|sender) (?:ip|network|server|host|domain|mail ?server)[^.]{0,60}(?:block|ban|denied|reject|refus|listed|not allowed|not permitted)
    \bip(?: address| adresse)?\b[^.]{0,40}(?:block|ban|denied|reject|refused|listed|not allowed|bloqu)|blocked ip
    banned (?:send|host|ip|address)|invalid ip for sending|no access from mail server|access from [^.]{0,40}denied
    not accepting connections? from|adresse ip|use the smtp server of your isp|dynamic ip|dialup|residential ip|open relay
    server access [^.]{0,60}forbidden|(?:connection|session|access) (?:is )?(?:blocked|dropped|terminated) (?:by|due|because)
    (?:helo|sender|from)[^.]{0,20} invalid domain name|too many spams?|user complaints
  `,
  ],
  [
    'relay',
    anyOf`
    relay(?:ing)? (?:access )?(?:is )?(?:denied|not (?:permitted|allowed)|prohibited|refused|restricted)
    not (?:permitted|allowed|configured) to relay|unable to relay|(?:do|does|will) not relay|relaying mail to
    e?mail address is not verified|not a gateway|must be authenticated|not local host
  `,
  ],
  [
    'sender',
    anyOf`
    sender (?:address|domain|verif|email|is |was |denied|reject|refused|not)
    senders? (?:are|is)? ?(?:rejected|denied|refused|unknown|not)|domain of sender|sender.{0,3}s (?:domain|address)
    \bfrom:? ?(?:address|domain|header)|(?:invalid|valid|bad|unknown) (?:sender|from\b|return[- ]path)
    envelope[ -](?:from|sender)|return[- ]path|(?:you are )?sending to/from an address
    not (?:allowed|authorized|authorised|permitted) to send|permission to (?:send|post)|not (?:a )?members? (?:of|\()
    does not accept (?:mail|e-?mail|messages?) from|not accepting (?:mail|e-?mail|messages?) from
    only (?:accepts?|allows?) [^.]{0,40}(?:from|sender|member)|restricted (?:sender|to)|moderat|authorized senders?
    group you tried to contact|callback (?:setup )?failed|while verifying <>
  `,
  ],
  [
    'rate',
    anyOf`
    too many (?:invalid|bad|unknown) (?:recipients?|addresses|users)|too many (?:connections?|recipients?|messages?|mails?|e-?mails?|errors|sessions?|concurrent)|(?:too )?many recipients this
    rate[- ]?limit|throttl|frequency limited|connection (?:rate|limit)
    (?:daily|hourly) (?:relay |sending |message )?(?:quota|limit)|sending (?:limit|quota|rate)|(?:mail|messages?) at a rate
    receiving (?:mail|email) too|temporarily deferred|gr[ea]y-?list|unexpected volume|unusual (?:rate|volume|traffic)|concurrency
    resources? (?:temporarily|restricted)
  `,
  ],
  [
    'mailbox_full',
    anyOf`
    (?:mail ?box|mail ?folder|mail ?drop|account|inbox|folder|storage|disk|maildir|(?:user|recipient)(?:.s)?(?: mail ?box)?) (?:is |was |are |currently |at |already )*(?:too )?(?:full\b|over)
    over ?(?:the |its |their |his |disk |allowed |allotted |storage |mail )*quota
    quota (?:has been |is |was |limit )*(?:exceed|full|violat|over|reached)|exceed(?:s|ed|ing)?[^.]{0,40}(?:quota|storage)
    quotaexceeded|mailbox (?:size |storage )?(?:limit|has exceeded|exceeded|exceeds)
    (?:insufficient|not enough|no more|out of)[^.]{0,20} (?:disk|space|storage|quota)|no (?:mailbox |disk |storage )?space|user is over
    messages in (?:the )?recipient.{0,3}s? mailbox exceed|exceed[^.]{0,20}(?:local|mailbox|message) (?:limit|count)
    mailbox[^.]{0,30} (?:would|will) (?:be )?exceed|as their mailbox is full|bo[iî]te[^.]{0,40}(?:pleine|satur)
    quota (?:d[eé]pass|excedid|superat)|postfach[^.]{0,40}voll|speicherplatz|buz[oó]n[^.]{0,30}llen|casella[^.]{0,40}pien
    caixa[^.]{0,40}(?:chei|lotad)|(?:ящик|квот)[^.]{0,40}(?:переполн|превыш)|容量|いっぱい|mailbox (?:is )?full
  `,
  ],
  [
    'too_large',
    anyOf`
    (?:message|mail|e-?mail|size|length|line|header|attachment)s?[^.]{0,40}(?:too (?:big|large|long)|exceed)
    too (?:large|big) (?:for|message|to)|(?:message|mail|maximum|max) (?:message )?size|size limit|line (?:limit|length)
    recipsizelimit|sizelimit
  `,
  ],
  [
    'suspended',
    anyOf`
    ${who}[^.]{0,60} (?:has been |have been |is |was |been |are |temporar[a-z]* |currently |permanently )*(?:disabled|suspended|inactive|inactivated|deactivated|locked|frozen|blocked|limited|discontinued|expired|bloqu|on hold|not active|not activated|closed for)
    disabled (?:recipient|mailbox|account|user|address)|inactive (?:user|account|mailbox|recipient)
    suspended (?:user|account|mailbox)|no longer accepting mail|account (?:suspension|has been terminated)
    temporar[a-z]* (?:disabled|locked|suspended|unavailable|rejected|refus)|on hold\b|unavailable or access denied|not receiving mail
    mailbox (?:is )?(?:currently |temporarily )?(?:frozen|locked)
  `,
  ],
  [
    'recipient_rules',
    anyOf`
    recipient preferences|user rules|blocked by (?:the )?(?:recipient|user|addressee)|refused by (?:the )?(?:recipient|user)|only accepting (?:(?:e-?)?mail|messages) from
    (?:recipient|user)(?: id)? (?:has )?refused? to receive|protected by (?:an )?(?:anti-?spam|challenge)|extended inactivity|manually blocked
    cannot route mail to user|accepts? mail from specific
  `,
  ],
  [
    'host_unknown',
    anyOf`
    (?:host|domain|dns name|host name)(?: or domain)?(?: name)?s? (?:[a-z]+ )?(?:is )?(?:unknown|not found|lookup fail|could not be found|not exist|cannot be found|invalid|is not valid|unresolvable)
    (?:unknown|no such|invalid|illegal|bad|not a valid) (?:mail )?(?:host|domain)|(?:cannot|could not|can.t|couldn.t|unable to|failed to) resolve (?:the )?(?:host|domain|name)
    (?:host|domain)(?: name)? (?:<>|host)? ?(?:does ?n[o.]t|doesn.?t) exist
    domain [^.]{0,40}(?:does not exist|doesn.?t exist|couldn.?t be found|isn.?t|not found)|name or service not known
    bad destination system|nxdomain|couldn.?t find any host|un-?rout[e]?able|no route to host name|account or domain may not exist
    domain (?:has expired|is not hosted|not hosted)|no address associated with|all relevant mx records point to non-existent
    invalid domain name|nxdomain|domain name not found|responded with code nx
    type=(?:mx|a|aaaa): host|host or domain name not|not listed in domain name|dnsdomaindoesnotexist|unknown mail system|no route found to domain|find any host by that name|(?:unable|failed) to find (?:the )?host
  `,
  ],
  [
    'no_mail_accepted',
    anyOf`
    (?:host|domain|server|system|site|name)[^.]{0,30} (?:does ?n[o.]t|doesn.?t|is not|never) (?:accept|receive|handle|support|configured to (?:receive|accept))[^.]{0,12} (?:any )?(?:(?:e-?)?mail|messages)
    null ?mx|not accepting network messages|no (?:valid )?mx\b|no (?:valid )?mail (?:service|hosts?|exchangers?|servers?)
    couldn.?t find a mail exchanger|mail exchanger or ip|no smtp service here|(?:sends|send) but (?:does|do) not
    (?:do|does) not accept (?:any )?(?:e-?)?mail (?:at|on|for)|no smtp service|receives no (?:e-?)?mail|(?:seems?|appears?) to reject all|mail receiving disabled
    host does not accept mail|domain does not accept mail|mx record (?:not found|does not)|does not like [^.]{0,8}mx
  `,
  ],
  [
    'moved',
    anyOf`
    ${who}[^.]{0,40} (?:has|have|had|was|is) (?:been )?(?:moved|changed|relocated)|no forwarding address
    not our (?:user|customer)|has left (?:the|our)|is no longer (?:with|at|employed|working)
    no longer (?:on (?:this |the )?server|with us|works?|employed|uses?)|user not local|mailbox has moved|<> ?has moved|has been replaced by
    please (?:try|use) (?:the )?(?:new|other) address|no longer an? (?:employee|member of staff)|(?:doesn.t|does not) work here|changed (?:his |her |their |the )?(?:e-?mail )?address
  `,
  ],
  [
    'user_unknown',
    anyOf`
    (?:unknown|no such|invalid|illegal|bad|non[ -]?existent|nonexisting|undeliverable|incorrect|unrecognized)[a-z -]{0,20} (?:local )?(?:${who}s?|person|mailbox(?:es)?|local[- ]part|name|id\b|userid|recipients?|users?)
    ${who}s?(?: name| id| host| here)?(?: host|[^a-z.])*(?:is |was |are |has been |could |can )?(?:unknown|invalid|not ?(?:be )?(?:found|known|recogni[sz]ed|exist|valid|listed|a known|existing|local|on this)|unavailable|not available|cannot be found|does not exist|do not exist|unrecogni[sz]ed|disallowed|incorrect|not a valid)
    ${who}[^.]{0,70}(?:does ?n[o.]t|doesn.?t|didn.?t|did not|don.t|do not|wasn.?t|was not|couldn.?t be|could not be|can.?t be|cannot be|isn.?t|is not) (?:exist|found|recogni[sz]ed|known|registered|listed|identified|hosted|belong|(?:an? )?valid|match|any)
    mailbox (?:unavailable|not (?:found|available|exist))|no mailbox
    no (?:such )?(?:user|account|recipient|person|mailbox|mail drop|address|id)\b
    recipient (?:address )?rejected: (?:access denied|undeliverable|unverified|not found|<)|(?<!recipient |sender )address rejected(?!:)|bad-?rcpt|validrcpt|bad-recipient|invalid-recipient
    can.?t accept user|addresses were unknown|server rejected recipients|not an active address|not present|mailbox unava
    no mail ?box available|not a local (?:address|user)|recipient is not accepted|recipient refused to accept
    envelope recipient has been denied|user missing home|nessun utente|no existe (?:dicha|ese|esa|tal)
    recipnotfound|recipientnotfound
    doesn.?t have an? [^.]{0,60} account|(?:does not|doesn.?t) have an? (?:[^.]{0,40} )?account here|not (?:a )?local user|not existing|not a valid e-?mail
    (?:not found|could not be found) in (?:the )?(?:ldap|directory)|unable to find (?:alias|user|recipient)|no ?(?:one|body) (?:by|with|here)|no such entry|no valid (?:[a-z]{1,20} )?(?:mailbox|recipient|user)|user quit|unknown virtual|wrong (?:recipient|address|user)
    user [^.]{0,40} not (?:found|known|exist|listed)|not listed in (?:public )?(?:name|domino|directory)
    not (?:a )?(?:valid|known|existing) (?:user|recipient|mailbox|address|account)|nobody here|unknown (?:or illegal )?alias
    address (?:unknown|not known)|was(?:n.t| not) found at|unknown address|no valid recipients?|no recipients? (?:found|match)
    (?:delivery userid|final delivery)|not our customer|email address (?:you entered )?(?:couldn.?t|could not|wasn.?t|was not)
    there is no one|no longer accepts (?:(?:e-?)?mail|messages)|handle mail for that user|<> (?:does not|doesn.t) exist|name is not recogni[sz]ed|account (?:is )?(?:closed|deleted|removed|terminated)
    mailbox (?:is )?(?:closed|deleted|removed)|(?:has been|was) (?:deleted|removed)
    no longer (?:exist|available|valid|in use|active|a valid)|unavailable mailbox|requested action not taken: mailbox
    bad destination mailbox|user account is unavailable
    ${who_else}[^.]{0,40}${absent_elsewhere}|nie ma takiego|ok[aä]nd mottagare|onbekende (?:gebruiker|ontvanger)|unbekannte[rn]? (?:benutzer|empf[aä]nger|adresse)|destin\. sconosciut|no existe (?:dicha|ese|esa|tal)
    annuaire domino|directorio de domino|domino ディレクトリには見つかりません
    ディレクトリのリストにありません|(?:宛先|ユーザ|アドレス|メールアドレス)[^。]{0,30}(?:存在しません|見つかりません|不明)|(?:收件人|用户|邮箱|地址)[^。]{0,20}(?:不存在|未找到)|존재하지 않는|없는 (?:사용자|계정|메일)
  `,
  ],
  [
    'content',
    anyOf`
    \bspam|\bube\b|\buce\b|junk mail|bulk (?:e-?)?mail|unsolicited|virus|malware|phish|content
    message (?:was |has been )?(?:rejected|blocked|refused)|policy|protocol violation|header error|(?:not|non).{0,3}rfc|rfc ?\d+ compl|violates? rfc|not compliant
    message not (?:accepted|allowed)|security|not authori[sz]ed|unauthori[sz]ed|improper use|access denied
    administrative prohibition|prohibited|filtered|rejected for|media error
  `,
  ],
  [
    'network',
    anyOf`
    timed? ?out|timeout|expired|retry|retries|hop count|routing loop|mail loop|too many hops
    connection (?:refused|reset|lost|failed|closed|died)|connect to|unable to connect|host not reachable
    could not (?:connect|deliver for)|wasn.?t able to establish|did not accept our requests|been in the queue too long|network
    unreachable|no route to|lookup fail|try again|temporar|name service error|hosts have been failing
    unable to deliver message after|name server|loops back|delayed|deferred
  `,
  ],
  [
    'system',
    anyOf`
    system error|internal (?:server )?error|local (?:error|configuration)|mailer|transaction failed|not implemented|insufficient
    service unavailable|configuration error|i/o error
  `,
  ],
];

const longest = 3_000;

/** The reason that a server's words give; undefined where they say nothing known. */
export function reasonIn(text: string): Reason | undefined {
  const words = withoutNames(text.slice(0, longest));
  return groups.find(([, pattern]) => pattern.test(words))?.[0];
}

/** Names of hosts and addresses say nothing: `<spam@example.com>` may be the one who is unknown. */
const withoutNames = (text: string): string =>
  text
    .replace(/https?:\/\/\S+/gi, ' ')
    .replace(/<?[^\s<>"'(),;:[\]]{1,64}@[^\s<>"'(),;:\]]{1,253}>?/g, ' <> ')
    .replace(/\b(?:[a-z0-9_-]{1,63}\.){1,10}[a-z]{2,20}\b/gi, (name) =>
      /\.(?:[A-Z][a-z]+|[A-Z]{2,})/.test(name) ? name : ' host ',
    )
    .replace(/\b\d{3}[ -](?=\d{3}[ -])/g, ' ')
    .replaceAll('_', ' ')
    .replace(/\s+/g, ' ');
