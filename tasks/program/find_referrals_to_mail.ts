import { scheduled } from '../../src/core/jobs/schedule.ts';
import { task } from '../../src/core/jobs/task.ts';
import { organizationsToMail } from '../../src/program/partners/mails/referral_mails.ts';

/** Finds the organizations whose partners are to be told of new referrals; each has its own job. */
export default task({
  payload: scheduled,
  async run({ tx, payload: { tick } }) {
    for (const { organization_id } of await organizationsToMail(tx, tick)) {
      tx.enqueue('program/mail_referrals', { organization_id }, { job_key: `mail_referrals:${organization_id}` });
    }
  },
});
