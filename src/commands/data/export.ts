/** `rail data export`: the change feed, for those who run the service. */
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { changesOf } from '../../core/exports/changes.ts';
import { textOf } from '../../core/formats/row_stream.ts';
import { reading } from '../../core/postgres/reading.ts';
import { exported } from '../../products.ts';
import { UsageError, withStore } from '../command.ts';

export const exportData = (
  plural: string,
  { organization, since }: { organization: string; since?: string },
): Promise<void> =>
  withStore(async ({ store }) => {
    const resource = exported.find((one) => one.plural === plural);
    if (!resource) {
      const known = exported.map((one) => one.plural).join(', ');
      throw new UsageError(`There is no '${plural}' to export. These can be exported: ${known}.`);
    }
    const options = { organization_id: organization, request_id: null, is_feed: true };
    const lines = reading(store, options, (tx) =>
      textOf({ name: plural, columns: [], rows: changesOf(tx, resource, since) }, 'ndjson'),
    );
    await pipeline(Readable.from(lines), process.stdout, { end: false });
  });
