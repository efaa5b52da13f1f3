import type { Message } from '../message/message.ts';
import { readDeliveryStatus, type StatusGroup } from './delivery_status.ts';
import { type JsonNotice, readJsonNotice } from './json_notice.ts';
import { isDelay, isReport, looksLikeReport } from './notice.ts';
import type { Reason } from './reasons.ts';
import { type ReturnedMail, readReturnedMail } from './returned_mail.ts';
import { addressIn, allAddressesIn, mentionsIn } from './server_words.ts';
import { classifyRefusal } from './verdict.ts';

export interface Bounced {
  /** Lower case; null where the report does not name it. */
  address: string | null;
  /** RFC 3463. */
  status: string | null;
  /** The address is dead. False for what may pass, and for what is not final. */
  hard: boolean;
  /** RFC 3464: only `failed` is final. */
  action: string;
  reason: Reason | null;
}

export interface Bounce {
  recipients: Bounced[];
  /** The Message-ID of the mail that bounced, where it was returned. */
  original_message_id: string | null;
}

/** Reads a report of a mail server; undefined where the mail is none. */
export function readBounce(message: Message): Bounce | undefined {
  const notice = readJsonNotice(message);
  if (notice) return notice.notificationType === 'Complaint' ? undefined : fromJson(notice);
  const returned = readReturnedMail(message);
  const groups = readDeliveryStatus(message);
  const words = groups.length > 0 ? message.text : returned.words;
  if (!isReport(message) && !looksLikeReport(message, words)) return undefined;
  const recipients = groups.length > 0 ? fromGroups(groups, message, returned) : fromWords(message, returned);
  return { recipients, original_message_id: returned.message_id };
}

function fromGroups(groups: StatusGroup[], message: Message, returned: ReturnedMail): Bounced[] {
  const { words } = returned;
  if (groups.length === 1 && groups[0]?.address === null)
    groups[0].address = elsewhere(message, returned, message.to)[0] ?? null;
  const by_address = new Map(groups.map((group) => [group.address, group]));
  return [...by_address.values()].map(({ address, action, status, diagnostic }) => {
    const near =
      address === null ? undefined : mentionsIn(words, []).find((mention) => mention.address === address)?.text;
    const context = groups.length === 1 ? words : (near ?? '');
    const done = action || (isDelay(message.subject, words) ? 'delayed' : 'failed');
    return {
      address,
      action: done,
      ...classifyRefusal({ action: done, status, text: diagnostic, context: withoutFields(context) }),
    };
  });
}

function fromWords(message: Message, returned: ReturnedMail): Bounced[] {
  const { words } = returned;
  const action = isDelay(message.subject, words) ? 'delayed' : 'failed';
  const senders = [...message.to, ...senderOf(returned)];
  const mentions = mentionsIn(words, senders);
  const whole = withoutFields(words.length > 0 ? words : message.text);
  if (mentions.length === 0)
    mentions.push(...elsewhere(message, returned, senders).map((address) => ({ address, text: whole })));
  if (mentions.length === 0)
    return [
      { address: null, action, ...classifyRefusal({ action, status: '', text: whole, context: message.subject }) },
    ];
  return mentions.map(({ address, text }) => {
    const report = mentions.length === 1 ? { text: whole, context: message.subject } : { text, context: '' };
    return { address, action, ...classifyRefusal({ action, status: '', ...report }) };
  });
}

/** Removes the fields of the returned mail: `Subject: Your account is full` is no reason. */
const withoutFields = (text: string): string =>
  text.replace(/^[ \t]{0,12}(?:subject|from|return-path|message-id|sent date|date|sent)[ \t]{0,4}:.*$/gim, '');

const senderOf = ({ fields }: ReturnedMail): string[] =>
  ['from', 'return-path', 'sender'].flatMap((name) => addressIn(fields?.get(name) ?? '') ?? []);

/** Returns recipients that no line names: from Exim's field, the mail's To, or the addresses in the sentences. */
function elsewhere({ fields, subject }: Message, { to, words }: ReturnedMail, senders: string[]): string[] {
  const failed = allAddressesIn(fields.all('x-failed-recipients').join(' '));
  if (failed.length > 0) return failed;
  if (to.length > 0) return to.slice(0, 50);
  return allAddressesIn(`${words}\n${subject}`)
    .filter((address) => !senders.includes(address))
    .slice(0, 50);
}

function fromJson({ bounce, delivery, mail }: JsonNotice): Bounce {
  const header = mail?.headers?.find(({ name }) => name.toLowerCase() === 'message-id')?.value ?? '';
  const original_message_id = /<([^<>\s]+)>/.exec(header)?.[1] ?? null;
  const failed = (bounce?.bouncedRecipients ?? []).map(({ emailAddress, status = '', diagnosticCode = '' }) => ({
    address: addressIn(emailAddress),
    action: 'failed',
    ...classifyRefusal({ action: 'failed', status, text: diagnosticCode, context: '' }),
  }));
  const said = { action: 'delivered', status: '', text: delivery?.smtpResponse ?? '', context: '' };
  const delivered = (delivery ? (mail?.destination ?? []) : []).map((address) => ({
    address: addressIn(address),
    action: 'delivered',
    ...classifyRefusal(said),
  }));
  return { recipients: [...failed, ...delivered], original_message_id };
}
