import { anyOf } from '../message/any_of.ts';
import type { Message } from '../message/message.ts';

/** Weighs the evidence that a mail comes from a mail server and reports the fate of another mail. */
const server_sender =
  /^(?:mailer-?daemon|post[_-]?master|mail-?daemon|mdaemon|mail[._-]?delivery[a-z._-]*|smtp-?(?:gateway|daemon)?|mailsystem|mail-system|majordomo|bounces?|listserv|sysadmin)@|-(?:admin|owner|bounces|request)@|^owner-/i;
const robot_sender = /^(?:no-?reply|do-?not-?reply)@/i;
const server_name =
  /mailer[- ]?daemon|mail (?:delivery|administrator|system|gateway)|postmaster|mail server at|interscan|delivery (?:sub)?system|system administrator|e-?mail (?:administrator|delivery)|^<>?$|microsoft outlook$/i;

const bounce_subject = anyOf`
    undeliver(?:able|ed)|^[ \t]*\[bounce\]|returned mail|returned to sender|failure notice|failure notification
    delivery (?:status )?(?:notification|failure|failed|has failed|problem|report|error)|delivery unsuccessful
    mail (?:delivery )?(?:system )?(?:failed|failure|error)
    message (?:delivery has failed|could not be delivered|not delivered|you sent blocked)|mail status report
    mail could not be delivered|could ?n[o.]t (?:be )?deliver|non[- ]?deliver(?:able|y)|delivery notification|mail delivery
    failed (?:delivery|mail)|warning: (?:message|could not send)|(?:message|delivery|mail) (?:was |is )?delayed
    rejected (?:mail|message|posting)|notice: mail delivery|there was an error sending|there was a problem delivering
    blocked by our bulk|your message (?:couldn|could not|wasn|was not|to .{1,100} (?:couldn|could not|was blocked))
    address not found|message blocked|are not (?:a )?member|errors from|mail failure|unzustellbar|nicht zugestellt
    zustell(?:ung|fehler|bericht)|fehler bei der (?:mail)?zustellung|unzustellbare|r[uü]ckl[aä]ufer
    non (?:remis|d[eé]livr[eé]|distribu[eé]|recapitabile|consegnat)
    [eé]chec (?:de |d.)(?:la )?(?:remise|livraison|distribution|envoi)|impossible de (?:remettre|livrer)
    no se (?:puede|pudo|ha podido) entregar|no entregad|devuelto|error (?:de|en la) entrega|mancat[ao] (?:recapito|consegna)
    impossibile (?:recapitare|consegnare)|mensagem n[aã]o entregue|n[aã]o foi poss[ií]vel entregar|falha (?:na|de) entrega
    devolvid[ao]|не доставлен|недоставлен|onbestelbaar|niet afgeleverd|ej levererat|メールエラー|配信(?:エラー|不能|できません|に失敗)|발송 ?실패|전송되지 못|전달되지 못|반송|送信できません|退信|无法投递
  `;
const answer_subject = /^\s*(?:re|aw|fw|fwd|wg|tr|sv|antw|r|rif|enc|rv)(?:\s*\[\d+\])?\s*:/i;

const bounce_sentence = anyOf`
    could ?n[o.]t be delivered|could not be (?:reached|sent)|cannot be delivered|was not delivered|were not delivered
    not been delivered|has not yet been delivered|did not reach the following|did not reach some or all|unable to deliver
    undeliverable|wasn.t able to deliver|delivery (?:has )?failed|delivery to the following|delevery to the following
    permanent (?:fatal )?errors?|failed permanently|had (?:permanent fatal|transient non-fatal|delivery) (?:errors|problems)
    message was created automatically by (?:the )?mail|returned to (?:you|sender)|qmail-send program
    transcript of session follows|error (?:occurred while trying to deliver|delivering your mail)|trouble delivering
    couldn.t be delivered|could not deliver|failure reasons?|rejected (?:the )?recipient|unknown user:?|invalid final delivery
    recipients? (?:were|was) rejected|address(?:\(es\))? (?:failed|could not)|will be retried|reporting-mta
    non-delivered information|incorrectly constructed|not (?:a )?members? of th(?:e|is) (?:mailing )?list|message you sent to
    permission to post messages|exceeded the (?:local )?limit|konnte nicht zugestellt|nicht zugestellt werden
    n.a pas pu [eê]tre (?:remis|livr|d[eé]livr|distribu)|no se (?:pudo|ha podido|puede) entregar
    non [eè] stato (?:possibile )?(?:consegn|recapit)|n[aã]o (?:p[oô]de|foi poss[ií]vel) (?:ser )?entreg|не может быть доставлен
    не удалось доставить|送信(?:できません|に失敗)|发送失败|無法送達|无法送达|被退回|전송되지 못|존재하지 않는|配信できません|送信できませんでした|kon niet worden (?:bezorgd|afgeleverd)|google groups
    diagnostic(?:-| )code|user(?:.s)? (?:mail ?folder|mailbox) is full|address not found
    your message to .{1,100} (?:has been|was) (?:blocked|rejected|automatically rejected)
  `;
/** `550 5.1.1`, `554-5.7.1`: what a server refuses, in whatever language it says so. */
const refusal = /(?<![\d.])5[0-5]\d[ -]{1,3}[#(]?5\.\d{1,3}\.\d{1,3}(?![\d.])/;
const report_type = /report-type\s*=\s*"?delivery-status/i;

/** Fields that only reports have. */
export function isReport({ fields, parts }: Message): boolean {
  return (
    report_type.test(fields.get('content-type')) ||
    parts.some(({ type }) => /delivery-status$/.test(type)) ||
    fields.has('x-failed-recipients')
  );
}

/** Weighs sender, return path, subject and words where no field decides. A person who forwards a report has none of the first two. */
export function looksLikeReport(message: Message, words: string): boolean {
  const { fields, from, from_name, subject, parts } = message;
  const of_server =
    server_sender.test(from) || server_name.test(from_name) || (from === '' && from_name === '' && fields.size > 0);
  const answers = answer_subject.test(subject);
  const by_subject = bounce_subject.test(subject) && !answers;
  const begin = words.slice(0, 8_000);
  const by_words = bounce_sentence.test(begin) || (of_server && refusal.test(begin));
  const weight =
    (of_server ? 2 : 0) +
    (by_subject ? 2 : 0) +
    (by_words ? 2 : 0) +
    (parts.some(({ type }) => type === 'message/rfc822') ? 1 : 0) +
    (robot_sender.test(from) ? 1 : 0) +
    (isNullPath(fields.all('return-path')) ? 1 : 0) +
    (/^auto-(?:generated|replied)/i.test(fields.get('auto-submitted')) ? 1 : 0);
  return (by_subject || by_words) && (weight >= 5 || (of_server && !answers && weight >= 4));
}

const isNullPath = (values: string[]): boolean => values.some((value) => /^\s*<>\s*$/.test(value));

const delay_words =
  /has not (?:yet )?been delivered|not yet been delivered|delivery (?:is |has been |to the following recipients? (?:has been |is ))?delayed|will (?:be retried|continue (?:to try|trying)|keep trying)|warning message only|delivery attempts will continue|still (?:being )?retr|still trying|do not need to resend|you do not need to (?:resend|do anything)|noch nicht zugestellt|verz[oö]gert|retard[eé]e?|en attente de remise|retras(?:ad|o)|ritardo|atrasad/i;
const delay_subject = /delayed|\(delay\)|\bwarning\b|verz[oö]ger|retard|retras|ritard|atras/i;

/** A server that goes on trying has not given up: nothing of it is final. */
export const isDelay = (subject: string, words: string): boolean =>
  delay_words.test(words.slice(0, 8_000)) &&
  (delay_subject.test(subject) || !/permanent|given up|giving up|failed permanently/i.test(words));
