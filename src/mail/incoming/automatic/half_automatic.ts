/** Mail that a program sends for a person: an invitation of a calendar, a reaction, a notice that something is to be read elsewhere. */
import { anyOf } from '../message/any_of.ts';
import type { Message } from '../message/message.ts';
import type { AutoReply } from './kinds.ts';

/** Methods of RFC 5546 that wait for an answer. */
const asks = /^(?:request|counter|add)$/i;
const answers = /^(?:reply|cancel|refresh|declinecounter)$/i;

/** An invitation, or the answer to one; an event that a person attached (`PUBLISH`, or no method) is an attachment. */
export function readInvitation({ parts }: Message): AutoReply | undefined {
  const calendars = parts.filter(({ type }) => type === 'text/calendar' || type === 'application/ics');
  const methods = calendars.map(({ text }) => /^METHOD[ \t]{0,9}:[ \t]{0,9}([A-Z]{1,30})/im.exec(text)?.[1] ?? '');
  if (methods.some((method) => asks.test(method))) return { kind: 'invitation', needs_review: true };
  return methods.some((method) => answers.test(method)) ? { kind: 'invitation', needs_review: false } : undefined;
}

/** The notice of a calendar service that somebody has booked a time. */
export function readBooking(text: string): AutoReply | undefined {
  const words = text.slice(0, 1_000);
  return booked.test(words) && /^(?:event type|event date|invitee|when|where)\b[^\n]{0,20}:/im.test(words)
    ? { kind: 'invitation', needs_review: true }
    : undefined;
}
const booked = /\b(?:event|meeting|appointment|call|booking) (?:has been|is|was) (?:scheduled|booked|confirmed)\b/i;

const reacted = anyOf`
    ^.{0,100}\breacted (?:to your (?:message|e-?mail|mail)|via gmail|to [“"])|^reacted \S{1,12} to [“"]
    ^(?:liked|loved|disliked|laughed at|emphasi[sz]ed|questioned) (?:[“"]|an? (?:image|message))
    ^.{0,100} a r[ée]agi (?:[àa] votre (?:message|e-?mail)|via gmail|avec)|^.{0,100} hat (?:auf (?:ihre|deine) (?:nachricht|e-?mail) reagiert|[üu]ber gmail reagiert)|^.{0,100} reagierte auf (?:ihre|deine) nachricht
    ^.{0,100} (?:ha reaccionado|reaccion[óo]) (?:a tu|a su|mediante gmail|con)|^.{0,100} ha (?:reagito|messo una reazione) (?:al tuo|al suo|tramite gmail|con)
    ^.{0,100} reagiu (?:[àa] sua|[àa] tua|[àa] mensagem|pelo gmail|com)|^.{0,100} heeft (?:op (?:je|uw) bericht gereageerd|gereageerd)
  `;
const dislikes = /[\u{1F44E}\u{1F620}\u{1F621}\u{1F92C}\u{1F595}\u{1F4A9}\u{1F92E}]|^disliked\b/imu;

/** An emoji that somebody chose below our email. One that refuses asks for no answer. */
export function readReaction({ parts }: Message, text: string): AutoReply | undefined {
  const part = parts.find(({ type }) => type.startsWith('text/vnd.google.email-reaction'));
  const first_lines = text.slice(0, 300);
  if (!part && !(text.length < 400 && reacted.test(first_lines))) return undefined;
  return { kind: 'reaction', needs_review: !dislikes.test(`${part?.text ?? ''}\n${first_lines}`) };
}

const notice = anyOf`
    (?:sent|received|have) (?:you )?(?:a|an) (?:new )?(?:secure|encrypted|protected|confidential) (?:e-?mail |mail )?message
    (?:secure|encrypted|protected) (?:e-?mail |mail )?message\b[^.]{0,60} (?:from|is waiting|portal)|to (?:view|read|open) (?:your|this|the) (?:secure |encrypted |protected )?message
    verschl[üu]sselte (?:nachricht|e-?mail)|message (?:s[ée]curis[ée]|chiffr[ée])|mensaje (?:seguro|cifrado)|messaggio (?:protetto|crittografato)|mensagem (?:segura|criptografada)
  `;
const elsewhere =
  /\b(?:click|sign in|log ?in|portal|passcode|one-time|follow the link|link|attachment|anmelden|klicken|connect|cliqu|enlace|accedi|acesse)/i;

/** Somebody wrote a message that is read behind a login: what the mail says is not theirs. */
export const isSecureNotice = (text: string): boolean => notice.test(text) && elsewhere.test(text);
