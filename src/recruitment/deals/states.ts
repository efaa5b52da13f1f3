import type { States } from '../../core/resource/states.ts';

export type DealStatus = 'draft' | 'agreed' | 'activating' | 'active' | 'cancelled';

/** `revise`: the terms change. `succeed`, `fail`: how an activation ends. */
export type DealAction = 'revise' | 'agree' | 'activate' | 'succeed' | 'fail' | 'cancel' | 'reopen';

export const deal_states: States<DealStatus, DealAction> = {
  draft: {
    doc: 'the terms are being negotiated and can be changed',
    on: { revise: 'draft', agree: 'agreed', cancel: 'cancelled', reopen: 'draft' },
    refusal: 'The deal is a draft. Agree to a version of its terms first.',
  },
  agreed: {
    doc: 'the terms of `agreed_version` are frozen',
    on: { agree: 'agreed', activate: 'activating', cancel: 'cancelled', reopen: 'draft' },
    refusal: 'The deal is agreed and its terms are frozen. Reopen the deal to change them.',
  },
  activating: {
    doc: 'the partner and the commission rule are being created',
    on: { activate: 'activating', succeed: 'active', fail: 'agreed' },
    refusal: 'The deal is being activated. Wait until its status is `active`, or `agreed` with a `last_error`.',
  },
  active: {
    doc: 'the partner has the commission rule of the deal',
    on: { activate: 'active' },
    refusal: 'The deal is active. Create another deal with the prospect to change the terms.',
  },
  cancelled: {
    doc: 'the deal was cancelled',
    on: { cancel: 'cancelled', reopen: 'draft' },
    refusal: 'The deal is cancelled. Reopen it first.',
  },
};
