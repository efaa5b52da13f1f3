import { campaignEvents } from './campaigns.ts';
import { dealEvents, inboxEvents } from './deals_and_inboxes.ts';
import { discoveryEvents } from './discovery.ts';
import { outreachEvents, unsubscribeEvents } from './outreach.ts';
import { doNotContactEvents, prospectEvents, teamEvents } from './prospects.ts';

/** The id prefixes of events, of their deliveries and of endpoints. */
export const prefixes = { id_prefix: 'fev', delivery_prefix: 'fwd', endpoint_prefix: 'fwe' };

/** Every event of the recruitment service: section 6 of its specification, "Catalogue", in its order. */
export const catalogue = {
  ...prospectEvents,
  ...unsubscribeEvents,
  ...doNotContactEvents,
  ...discoveryEvents,
  ...outreachEvents,
  ...campaignEvents,
  ...dealEvents,
  ...inboxEvents,
  ...teamEvents,
};
