import { z } from 'zod';
import { task } from '../../src/core/jobs/task.ts';
import { Change, makeLater } from '../../src/program/payouts/by_hand/change.ts';

/** Changes a payout of many commissions as a person has requested. */
export default task({
  payload: z.object({
    organization_id: z.string(),
    request_id: z.string().nullable(),
    id: z.string(),
    change: Change,
    status: z.string(),
  }),
  run: ({ tx, payload: { id, change, status } }) => makeLater(tx, id, change, status),
});
