import { z } from 'zod';
import { task } from '../../src/core/jobs/task.ts';
import { refreshNext } from '../../src/recruitment/contact/mark.ts';

/** Marks or lifts what an entry hits beyond what a request did: some prospects, and has the next ones done. */
export default task({
  payload: z.object({
    ...{ organization_id: z.string(), request_id: z.string().nullable(), id: z.string() },
    by: z.object({ user_id: z.string().nullable(), member_id: z.string().nullable() }),
  }),
  run: ({ tx, payload, services }) => refreshNext(tx, services.vault, payload),
});
