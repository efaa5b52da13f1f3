import { z } from 'zod';
import { task } from '../../src/core/task.ts';
import { fanOut } from '../../src/webhooks/fan_out.ts';

/** Gives events their places in the endpoints' sequences. */
export default task({
  payload: z.object({}),
  run: (_, { store }) => fanOut(store.database),
});
