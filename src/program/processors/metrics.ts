import { counter } from '../../core/metrics/registry.ts';

export type Outcome = 'stored' | 'repeated' | 'unknown_type' | 'other_mode' | 'refused' | 'reconciled';

export const webhooks = counter(
  'rail_processor_webhooks_total',
  {
    help: 'Webhooks of billing processors by outcome: stored; repeated (the event is stored already); unknown_type (it has no effect here, and is not stored); other_mode (of test mode at a connection in live mode, or the reverse); refused (not signed by the processor); reconciled (it had not arrived, and was asked for).',
    row: 'API',
    title: 'Webhooks of billing processors',
  },
  ['processor', 'outcome'],
);
