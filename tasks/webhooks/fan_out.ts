import { z } from 'zod';
import { task } from '../../src/core/jobs/task.ts';
import { FanOut } from '../../src/webhooks/queue/fan_out.ts';

/** Gives events their places in the endpoints' sequences. */
export default task({
  payload: z.object({}),
  run: (_, { use }) => use(FanOut).run(),
});
