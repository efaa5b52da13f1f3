import { z } from 'zod';
import { task } from '../../src/core/task.ts';
import { transaction } from '../../src/core/transaction.ts';
import { attributeClick } from '../../src/program/attribution.ts';

/** Turns a click into a referral, unless something that named the click has done so already. */
export default task({
  payload: z.object({ organization_id: z.string(), click_id: z.string(), request_id: z.string().nullable() }),
  async run({ click_id, ...cause }, { store }) {
    await transaction(store, cause, (tx) => attributeClick(tx, click_id));
  },
});
