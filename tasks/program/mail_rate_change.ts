import { service_opening, taskOutsideTransaction } from '../../src/core/jobs/task.ts';
import { transaction } from '../../src/core/postgres/transaction.ts';
import { mailRateChange, RuleChange } from '../../src/program/commissions/rate_mails.ts';

/** Emails the partners for whom a change of a rule means another rate, some in each transaction. */
export default taskOutsideTransaction({
  payload: RuleChange,
  async run({ payload, store, services }) {
    let last: string | undefined = '';
    while (last !== undefined) {
      const after_id: string = last;
      last = await transaction(store, service_opening, (tx) => mailRateChange(tx, services, payload, after_id));
    }
  },
});
