import { scheduled } from '../../src/core/jobs/schedule.ts';
import { task } from '../../src/core/jobs/task.ts';
import { default_retention } from '../../src/core/resource/services.ts';
import { oldestKept, organizationsWithClicks } from '../../src/program/customers/click_retention.ts';

/** Finds the organizations whose clicks are kept for too long; each has jobs of its own. Without a setting, clicks are kept for ever. */
export default task({
  payload: scheduled,
  async run({ tx, payload: { run_id, tick }, services }) {
    const { click_days } = services.retention ?? default_retention;
    if (click_days === null) return;
    const before = oldestKept(click_days, tick);
    for (const { organization_id } of await organizationsWithClicks(tx, before))
      tx.enqueue('program/purge_clicks_of_organization', { organization_id, run_id, tick, before, after: '' });
  },
});
