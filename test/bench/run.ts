import { api } from './api.ts';
import { audit } from './audit.ts';
import { beside } from './beside.ts';
import { bodies } from './bodies.ts';
import { clicks } from './clicks.ts';
import { disk } from './disk.ts';
import { exports } from './export.ts';
import { graphql } from './graphql.ts';
import { command } from './harness.ts';
import { idle } from './idle.ts';
import { mail } from './mail.ts';
import { maturity } from './maturity.ts';
import { outreach } from './outreach.ts';
import { pages } from './pages.ts';
import { payouts } from './payouts.ts';
import { processors } from './processors.ts';
import { prospects } from './prospects.ts';
import { replies_in } from './replies_in.ts';
import { reports } from './reports.ts';
import { salesBulk } from './sales_bulk.ts';
import { scans } from './scans.ts';
import { slice } from './slice.ts';
import { track } from './track.ts';
import { webhooks } from './webhooks.ts';

/** `npm run bench -- NAME`: one file a bench, one line here. */
const benches = [
  ...[
    slice,
    clicks,
    track,
    webhooks,
    api,
    bodies,
    audit,
    exports,
    reports,
    graphql,
    payouts,
    prospects,
    mail,
    replies_in,
  ],
  ...[outreach, scans, disk, salesBulk, idle, maturity, beside, processors, pages],
];

const stopping = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stopping.abort());
const output = {
  out: (text: string) => process.stdout.write(text),
  err: (text: string) => process.stderr.write(text),
};
process.exitCode = await command(process.argv.slice(2), benches, output, stopping.signal);
