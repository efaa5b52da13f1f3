/** Reads one inbox with a classifier that poison works on. Run by itself, it reads until a mail kills it: `<database> <organization> <inbox>`. */
import { limitConcurrency } from '../../../src/core/jobs/concurrency.ts';
import { openDatabase, run } from '../../../src/core/postgres/database.ts';
import type { Store } from '../../../src/core/postgres/transaction.ts';
import { writeEvents } from '../../../src/products.ts';
import type { InboxKey } from '../../../src/recruitment/inboxes/inbox.ts';
import { openClassifier } from '../../../src/recruitment/reading/classifier.ts';
import { readInbox } from '../../../src/recruitment/reading/connection.ts';
import { log, services, sql } from '../../harness.ts';

const worker_id = 'wrk_test';

/** Ends once it is `stopped`. */
export async function readPoison({ organization_id, inbox_id }: InboxKey, store: Store, stopped: AbortSignal) {
  await run(
    store.database,
    sql`
    insert into recruitment.inbox_reader (organization_id, inbox_id, worker_id) values (${organization_id}, ${inbox_id}, ${worker_id})
    on conflict (organization_id, inbox_id) do update set worker_id = excluded.worker_id`,
  );
  const context = { store, services, log, worker_id, stopping: stopped, cut_off: stopped };
  const limited = limitConcurrency(1);
  const classifier = openClassifier(new URL('./poison_thread.ts', import.meta.url));
  const sharing = { limitConnecting: limited, limitReading: limited, classifier, opened: () => {}, seen: () => {} };
  const pace = { poll_ms: 100, other_folders_ms: 60_000, silence_ms: 60_000 };
  await readInbox({ organization_id, inbox_id }, context, sharing, stopped, pace);
  classifier.close();
}

if (import.meta.main) {
  const [url = '', organization_id = '', inbox_id = ''] = process.argv.slice(2);
  const store = { database: openDatabase(url, { size: 2, name: 'rail test' }), writeEvents };
  await readPoison({ organization_id, inbox_id }, store, new AbortController().signal);
}
