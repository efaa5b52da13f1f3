import { z } from 'zod';
import { scheduled } from '../../src/core/jobs/schedule.ts';
import { batchTask } from '../../src/core/jobs/task.ts';
import { observeJoining } from '../../src/recruitment/deals/joining.ts';

const most = 500;

/** Looks for invited prospects among those who joined a program. */
export default batchTask({
  payload: scheduled.extend({ organization_id: z.string(), program_id: z.string() }),
  most,
  run: ({ tx, payload: { program_id }, services }) => observeJoining(tx, services.vault, program_id, most),
});
