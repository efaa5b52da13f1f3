import type { Stage } from './fields.ts';

/** The stages of the pipeline, in their order. */
export const stages: Record<Stage, { doc: string }> = {
  found: { doc: 'found or added, and not written to yet' },
  contacted: { doc: 'the first email was sent' },
  replied: { doc: 'they replied' },
  interested: { doc: 'they want to go on, or ask' },
  negotiating: { doc: 'a deal is being made' },
  agreed: { doc: 'a deal was agreed' },
  active: { doc: 'they joined the affiliate program' },
  lost: { doc: 'they declined or unsubscribed' },
};
