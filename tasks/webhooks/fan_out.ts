import { z } from 'zod';
import { task } from '../../src/core/jobs/task.ts';

/** Gives events their places in the endpoints' sequences. */
export default task({
  payload: z.object({}),
  run: (_, { fan_out }) => fan_out.run(),
});
