import { idParams, type Operation, operation } from '../../core/resource/operation.ts';
import { transition } from '../../core/resource/states.ts';
import { base_path } from '../events/base_path.ts';
import { campaigns, lockCampaign } from './campaign.ts';
import { transitions } from './campaign_states.ts';
import { pauseCampaign } from './pause.ts';
import { resumeCampaign } from './resume.ts';
import { stopCampaign } from './stop.ts';

export const lifecycleOperations: Operation[] = [
  operation({
    name: 'campaigns.pause',
    method: 'POST',
    path: `${base_path}/campaigns/{id}/pause`,
    scope: 'campaigns:write',
    summary: 'Pauses a campaign that is sending.',
    doc: 'Emits `campaign.paused`. If the campaign is already paused, the cause `user` is added to `pause_causes`, and no event is emitted.',
    params: idParams,
    reply: campaigns.schema,
    errors: ['invalid_state_transition'],
    async run({ tx, params }) {
      const { state } = await lockCampaign(tx, params.id);
      transition(transitions, state, 'pause');
      return pauseCampaign(tx, params.id, 'user', null);
    },
  }),
  operation({
    name: 'campaigns.resume',
    method: 'POST',
    path: `${base_path}/campaigns/{id}/resume`,
    scope: 'campaigns:write',
    summary: 'Resumes a campaign that is paused.',
    doc: 'Removes every cause from `pause_causes` except `inbox`, which is removed once an inbox of the campaign is connected. Emits `campaign.resumed` if no cause is left; otherwise the campaign stays paused. A campaign that is sending stays as it is.',
    params: idParams,
    reply: campaigns.schema,
    errors: ['invalid_state_transition', 'feature_not_in_plan'],
    async run({ tx, params }) {
      const campaign = await lockCampaign(tx, params.id);
      if (campaign.state === 'sending') return campaign;
      transition(transitions, campaign.state, 'resume');
      return resumeCampaign(tx, campaign);
    },
  }),
  operation({
    name: 'campaigns.stop',
    method: 'POST',
    path: `${base_path}/campaigns/{id}/stop`,
    scope: 'campaigns:write',
    summary: 'Stops a campaign for good, and all of its sequences.',
    doc: 'It cannot be resumed. Emits `campaign.stopped`. A campaign that is stopped stays as it is.',
    params: idParams,
    reply: campaigns.schema,
    errors: ['invalid_state_transition'],
    async run({ tx, params }) {
      const campaign = await lockCampaign(tx, params.id);
      transition(transitions, campaign.state, 'stop');
      return campaign.state === 'stopped' ? campaign : stopCampaign(tx, campaign);
    },
  }),
];
