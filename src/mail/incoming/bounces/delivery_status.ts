import { type Fields, readFields, readGroups } from '../message/fields.ts';
import type { Message } from '../message/message.ts';
import { addressIn } from './server_words.ts';

/** One recipient of a delivery status notification (RFC 3464). */
export interface StatusGroup {
  address: string | null;
  action: string;
  status: string;
  diagnostic: string;
}

const status_type = /^message\/(?:global-)?delivery-status$/;
const group_begin = /^(?:Final|Original)-Recipient[ \t]*:/im;

/** The recipients of message/delivery-status, or of the same fields within the text, where some servers put them. */
export function readDeliveryStatus({ parts, text }: Message): StatusGroup[] {
  const reports = parts.filter(({ type }) => status_type.test(type)).map((part) => part.text);
  const texts = reports.length > 0 ? reports : [...parts.map((part) => part.text), text].filter(hasFields);
  return texts
    .flatMap((report) => readGroups(report).flatMap(splitAtRecipients))
    .flatMap(toGroup)
    .slice(0, 1_000);
}

const hasFields = (text: string): boolean => group_begin.test(text) && /^(?:Action|Status)[ \t]*:/im.test(text);

/** Servers that leave out the empty line between the message's fields and the recipient's give one group. */
function splitAtRecipients(group: Fields): Fields[] {
  const addresses = group.all('final-recipient');
  if (addresses.length < 2) return [group];
  const at = (name: string, index: number): string => group.all(name)[index] ?? '';
  return addresses.map((address, index) =>
    readFields(
      `Final-Recipient: ${address}\nAction: ${at('action', index)}\nStatus: ${at('status', index)}\nDiagnostic-Code: ${at('diagnostic-code', index)}`,
    ),
  );
}

function toGroup(group: Fields): StatusGroup[] {
  if (
    !group.has('final-recipient', 'original-recipient', 'action') ||
    !group.has('final-recipient', 'original-recipient', 'status')
  )
    return [];
  const address =
    addressIn(group.get('original-recipient')) ??
    addressIn(group.get('final-recipient')) ??
    addressIn(group.get('x-actual-recipient'));
  return [
    {
      address,
      action: /^[a-z]+/.exec(group.get('action').toLowerCase())?.[0] ?? '',
      status: group.get('status'),
      diagnostic: `${withoutType(group.get('diagnostic-code'))} ${categoryOf(group)}`.trim(),
    },
  ];
}

/** PowerMTA's own verdict: bad-mailbox, quota-issues, spam-related, … */
const categoryOf = (group: Fields): string => group.get('x-powermta-bouncecategory').replaceAll('-', ' ').slice(0, 40);

/** `smtp; 550 …` says that the text is a server's. */
const withoutType = (diagnostic: string): string => diagnostic.replace(/^[A-Za-z0-9-]{1,20}\s*;\s*/, '');
