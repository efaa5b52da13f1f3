import { anyOf } from '../message/any_of.ts';

/** Filters that hold an email back until its sender proves to be a person. */

const held = anyOf`
    (?:message|e-?mail|mail)\b[^.!?]{0,60} (?:is|was|has been|are) (?:on (?:a|the|my) waitlist|(?:being )?held|quarantined|in quarantine|waiting|pending|blocked|not (?:yet )?(?:been )?delivered)
    (?:will|can) (?:only|not) be delivered|before your (?:message|e-?mail) (?:is|can be|will be) delivered|undelivered until
    (?:guest|approved|allowed|safe|white)[ -]?(?:list|senders)|whitelist|(?:protected|guarded|screened|filtered) by|spam (?:filter|protection|blocker)|boxbe|spam ?arrest|mailinblack|bitbounce
    (?:prot[ée]g[ée]e?|filtr[ée]e?) par|anti-?spam|filtre|en attente (?:de|d.)|liste blanche
    (?:nachricht|mail|e-?mail)\b[^.!?]{0,60} (?:zur[üu]ckgehalten|erst zugestellt|noch nicht zugestellt|wartet)|spamschutz|durch einen filter
    (?:mensaje|correo)\b[^.!?]{0,60} (?:retenido|pendiente|en cuarentena|no ha sido entregado)|lista blanca|filtro
    (?:messaggio|e-?mail|mail)\b[^.!?]{0,60} (?:in attesa|trattenut[oa]|in quarantena|non [èe] stat[oa] consegnat[oa])|lista bianca
    (?:mensagem|e-?mail)\b[^.!?]{0,60} (?:retida|retido|pendente|em quarentena|n[ãa]o foi entregue)|lista de remetentes
  `;
const prove = anyOf`
    (?:prove|confirm|verify|show|certify|validate|establish)\b[^.!?]{0,40} (?:you are|you.re|yourself|you as|being|a|as a|that a) ?(?:a |an )?(?:real |actual |live )?(?:human|person|people|sender|not a|no robot|robot|bot|spammer)
    (?:verify|confirm|validate|authenticate) (?:your|this|the) (?:identity|e-?mail|address|message|sender|delivery)|add yourself to|(?:approve|authorize) yourself|sender verification
    (?:not|never) (?:a |an )?(?:robot|bot|machine|spammer)\b|captcha|to (?:deliver|release|complete the delivery of) (?:your|this|it)
    (?:confirm|prouv|v[ée]rifi|authentifi|valid)\p{L}{0,20}[^.!?]{0,40} (?:personne|humain|exp[ée]diteur|robot|identit[ée]|adresse)
    (?:best[äa]tig|beweis|verifizier)\p{L}{0,20}[^.!?]{0,40} (?:mensch|person|absender|roboter|adresse)|(?:mensch|person|kein roboter)\b[^.!?]{0,30} best[äa]tig
    (?:confirm|demuestr|verifi|valid)\p{L}{0,20}[^.!?]{0,40} (?:persona|humano|remitente|robot|identidad)
    (?:conferm|dimostr|verific)\p{L}{0,20}[^.!?]{0,40} (?:persona|umano|mittente|robot|identit[àa])
    (?:confirm|prov|verifi|comprov)\p{L}{0,20}[^.!?]{0,40} (?:pessoa|humano|remetente|rob[ôo]|identidade)
  `;
const click = anyOf`
    click|tap (?:here|the|on)|(?:use|follow|visit|open) (?:the|this) (?:link|page|button|url)|link below|press the button|reply (?:to|with) (?:this|the code)|captcha
    cliqu|lien|klick|link\b|enlace|haga clic|pulse|collegamento|premi|clique|acesse
  `;
const challenge_subjects = anyOf`
    ^(?:re ?: ?)?(?:\[?(?:boxbe|spam ?arrest|bitbounce|mailinblack)|(?:please )?(?:verify|confirm) your (?:e-?mail|message|identity)|action required: (?:confirm|verify|your)|delivery: challenge|message (?:held|awaiting)|sender verification|authentification requise|v[ée]rification (?:de l.exp[ée]diteur|requise))
  `;

/** Asked to prove something by a link, or told that the email is held back: two signs, since people say each of them. */
export function isChallenge(subject: string, text: string): boolean {
  const proves = prove.test(text) || challenge_subjects.test(subject);
  const holds = held.test(text);
  return (proves && click.test(text) && (holds || /https?:|captcha/i.test(text))) || (proves && holds);
}
