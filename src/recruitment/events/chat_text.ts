import type { EmittedEvent } from '../../core/postgres/transaction.ts';

type Fields = Record<string, unknown>;

/** Types that have a text of their own in a team chat: ids and counts alone, as the events themselves. */
const texts: Record<string, (data: Fields) => string> = {
  // A reply to an invitation, or to a person's own email, belongs to no campaign.
  'reply.received': ({ reply_kind, prospect_id, campaign_id }) =>
    `A prospect replied (${words(reply_kind)}): prospect ${prospect_id}${campaign_id === null ? '' : `, campaign ${campaign_id}`}`,
  'deal.agreed': ({ deal_id }) => `A deal was agreed: ${deal_id}`,
  'search.completed': ({ found }) => `A search finished: ${found} new ${found === 1 ? 'prospect' : 'prospects'}`,
};

/** Returns the text about an event for a team chat: a dedicated text, or a line with the event's name. */
export const chatText = ({ type, data }: Pick<EmittedEvent, 'type' | 'data'>): string =>
  texts[type]?.(data as Fields) ?? `Event: ${type}`;

const words = (value: unknown): string => String(value).replaceAll('_', ' ');
