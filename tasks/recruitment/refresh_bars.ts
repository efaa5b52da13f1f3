import { z } from 'zod';
import { task } from '../../src/core/jobs/task.ts';
import { refreshNext } from '../../src/recruitment/contact/mark.ts';
import { reasons } from '../../src/recruitment/contact/suppression.ts';
import { lift_reasons } from '../../src/recruitment/events/fields.ts';

/** Marks or lifts what an entry hits beyond what a request did: some prospects, and has the next ones done. */
export default task({
  payload: z.object({
    ...{ organization_id: z.string(), request_id: z.string().nullable() },
    ...{ id: z.string(), reason: z.enum(reasons), after: z.string() },
    ...{ lifted_at: z.string().nullable(), lift_reason: z.enum(lift_reasons).nullable() },
    noted: z.enum([...reasons, 'taken_back']).nullable(),
    by: z.object({ user_id: z.string().nullable(), member_id: z.string().nullable() }),
  }),
  run: ({ tx, payload, services }) => refreshNext(tx, services.vault, payload),
});
