import { z } from 'zod';
import { users } from '../../src/core/access/user.ts';
import { task } from '../../src/core/jobs/task.ts';
import { removeMemberOf } from '../../src/recruitment/remove_member.ts';

/** Ends what a person who was removed from an organization is in its products: a member of the recruitment team. One who was added again stays. */
export default task({
  payload: z.object({ organization_id: z.string(), request_id: z.string().nullable(), user_id: z.string() }),
  async run({ tx, payload: { user_id } }) {
    const { status } = await users.get(tx, user_id);
    if (status === 'removed') await removeMemberOf(tx, user_id);
  },
});
