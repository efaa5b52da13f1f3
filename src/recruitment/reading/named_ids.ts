import type { Message } from '../../mail/incoming/message/message.ts';

const longest_report = 100_000;
const most_ids = 50;

/** A report may name the email that it is about anywhere in the part that it returns, or among its words, with and without brackets. */
export const idsWithin = ({ text, html, parts }: Message): string[] =>
  [text, html, ...parts.map((part) => part.text)]
    .flatMap((each) => namedIds(each.slice(0, longest_report)))
    .slice(0, most_ids);

const namedIds = (text: string): string[] =>
  [
    ...text.matchAll(
      /(?:message-id|x-rail-message)[^a-z0-9\n]{1,20}(?:lt;)?([a-z0-9][^\s<>"';,&@]{0,200}@[^\s<>"';,&@]{1,200})/gi,
    ),
  ].map(([, id]) => id as string);
