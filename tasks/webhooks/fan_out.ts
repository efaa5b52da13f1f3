import { z } from 'zod';
import { taskOutsideTransaction } from '../../src/core/jobs/task.ts';
import { FanOut } from '../../src/webhooks/queue/fan_out.ts';

/** Appends deliveries of events to the endpoints' queues. */
export default taskOutsideTransaction({
  payload: z.object({}),
  run: ({ use }) => use(FanOut).run(),
});
