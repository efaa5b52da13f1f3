import { DeletedMarker, deletedMarker } from '../../core/resource/deleted_marker.ts';
import { idParams, type Operation, operation } from '../../core/resource/operation.ts';
import { base_path } from '../events/base_path.ts';
import { inboxes } from '../inboxes/inbox.ts';
import { keepTokens, login_errors, tryStored } from '../inboxes/try_stored.ts';
import { deleteInbox, disconnectInbox, lockCampaignsOf, reconnectInbox } from './inbox_connection.ts';

const events_of_campaigns =
  'and `campaign.inbox_dropped` for each of its campaigns with another inbox that is connected, or `campaign.paused` for each without';

export const inboxConnectionOperations: Operation[] = [
  operation({
    name: 'inboxes.delete',
    method: 'DELETE',
    path: `${base_path}/inboxes/{id}`,
    scope: 'inboxes:write',
    summary: 'Deletes an inbox and its login.',
    doc: `Sequences that have not begun move to another inbox of their campaign; those that have begun fail with \`inbox_removed\` (\`campaign.send_failed\`); beyond some hundred, a worker fails the others. Invitations, answers and tests that wait for it are cancelled. If it was connected, emits \`inbox.disconnected\` with the reason \`removed\`, ${events_of_campaigns}.`,
    params: idParams,
    reply: DeletedMarker,
    async run({ tx, params }) {
      await deleteInbox(tx, params);
      return deletedMarker('inbox', params.id);
    },
  }),
  operation({
    name: 'inboxes.disconnect',
    method: 'POST',
    path: `${base_path}/inboxes/{id}/disconnect`,
    scope: 'inboxes:write',
    summary: 'Disconnects an inbox, until it is reconnected.',
    doc: `Sequences that send from it are paused. Emits \`inbox.disconnected\` with the reason \`disabled\`, ${events_of_campaigns}. An inbox that is disconnected stays as it is.`,
    params: idParams,
    reply: inboxes.schema,
    run: ({ tx, params }) => disconnectInbox(tx, params, 'disabled'),
  }),
  operation({
    name: 'inboxes.reconnect',
    method: 'POST',
    path: `${base_path}/inboxes/{id}/reconnect`,
    scope: 'inboxes:write',
    summary: 'Reconnects an inbox.',
    doc: 'Both logins are tried first. If one is refused, the inbox stays disconnected. Its sequences continue. Emits `inbox.connected`, and `campaign.resumed` for each campaign that was paused only because it had no connected inbox. An inbox that is connected stays as it is.',
    params: idParams,
    reply: inboxes.schema,
    errors: login_errors,
    ask: ({ params, services, read }) => tryStored(params.id, services, read),
    async run({ tx, params, services, asked }) {
      await lockCampaignsOf(tx, params.id);
      await keepTokens(tx, params.id, asked, services);
      return reconnectInbox(tx, params);
    },
  }),
];
