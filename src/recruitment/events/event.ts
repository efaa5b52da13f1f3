import { draftOf } from '../../webhooks/events/event.ts';
import { catalogue } from './catalogue.ts';

/** An event of the organization, ready for `tx.emit`: `event('note.added', tx.organization_id, { … })`. */
export const event = draftOf('recruitment', catalogue);
