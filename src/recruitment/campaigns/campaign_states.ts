import { type States, statusSchema } from '../../core/resource/states.ts';

const ended = 'Create another campaign.';

/** What can be done with a campaign in each state. `pause` and `resume` of the service are in the room lifecycle. */
export const campaign_states = {
  draft: {
    doc: 'nothing is sent, and everything can be changed',
    on: { edit: 'draft', add: 'draft', launch: 'sending', schedule: 'scheduled', stop: 'stopped' },
    refusal: 'The campaign is a draft. Launch it first.',
  },
  scheduled: {
    doc: 'it starts at `start_at`',
    on: { add: 'scheduled', launch: 'sending', schedule: 'scheduled', unschedule: 'draft', stop: 'stopped' },
    refusal:
      'The campaign is scheduled. Wait until it starts, launch it without `start_at` to start it now, or stop it.',
  },
  sending: {
    doc: 'emails are sent when they are due',
    on: { add: 'sending', pause: 'paused', stop: 'stopped', finish: 'finished' },
    refusal: 'The campaign is sending. Pause it first.',
  },
  paused: {
    doc: 'nothing is sent: `pause_causes` says why',
    on: { edit: 'paused', add: 'paused', pause: 'paused', resume: 'sending', stop: 'stopped' },
    refusal: 'The campaign is paused. Resume it, or stop it.',
  },
  stopped: { doc: 'it was stopped for good', on: { stop: 'stopped' }, refusal: `The campaign was stopped. ${ended}` },
  finished: {
    doc: 'every prospect finished their sequence',
    on: {},
    refusal: `The campaign has finished. ${ended}`,
  },
} as const satisfies States<string, string>;

export type CampaignState = keyof typeof campaign_states;
export type CampaignAction =
  | 'edit'
  | 'add'
  | 'launch'
  | 'schedule'
  | 'unschedule'
  | 'pause'
  | 'resume'
  | 'stop'
  | 'finish';

/** The same table, in the type that `transition` takes. */
export const transitions: States<CampaignState, CampaignAction> = campaign_states;
export const campaign_state = statusSchema(transitions);
