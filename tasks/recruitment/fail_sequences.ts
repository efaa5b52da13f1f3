import { z } from 'zod';
import { batchTask, most_at_once } from '../../src/core/jobs/task.ts';
import { failSequencesOf } from '../../src/recruitment/campaigns/inbox_connection.ts';

/** Moves and fails the sequences of an inbox that was deleted that the request has left. */
export default batchTask({
  payload: z.object({ organization_id: z.string(), request_id: z.string().nullable(), id: z.string() }),
  most: most_at_once,
  run: ({ tx, payload: { id } }) => failSequencesOf(tx, id),
});
