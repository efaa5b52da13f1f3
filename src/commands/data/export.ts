import { once } from 'node:events';
import { linesOf } from '../../core/exports/feed.ts';
import { textOf } from '../../core/formats/row_stream.ts';
import { reading } from '../../core/postgres/reading.ts';
import type { AnyResource } from '../../core/resource/resource.ts';
import { Problem } from '../../core/values/problem.ts';
import { feed } from '../../program/exported.ts';
import { choose } from '../chosen.ts';
import { UsageError, withStore } from '../command.ts';

interface ExportOptions {
  organization?: string;
  since?: string;
  personalData?: boolean;
}

/** `rail data export`: all of a resource, or what changed since a position, as NDJSON. */
export const exportResource = (name: string, { organization, since, personalData }: ExportOptions): Promise<void> =>
  withStore(async (opened) => {
    const sees_personal = personalData ?? false;
    const resource = resourceNamed(name, sees_personal);
    const { organization_id } = await choose(opened, 'organization', organization, { or_demo: true });
    const lines = reading(opened.store, { organization_id, request_id: null, is_feed: true }, (tx) =>
      textOf(linesOf(tx, feed, resource, { since, sees_personal }), 'ndjson'),
    );
    await print(lines).catch(saidForTheCommandLine);
  });

/** @throws UsageError where there is none of the name, or its personal data was not asked for */
function resourceNamed(name: string, sees_personal: boolean): AnyResource {
  const resource = feed.resources.find(({ plural }) => plural === name);
  if (!resource) {
    const names = feed.resources.map(({ plural }) => plural).join(', ');
    throw new UsageError(`There is no resource '${name}' to export. Resources: ${names}.`);
  }
  if (!feed.personal.includes(resource) || sees_personal) return resource;
  throw new UsageError(`The resource '${name}' has personal data, which is exported only with --personal-data.`);
}

/** On standard output, as fast as it is read. */
async function print(chunks: AsyncIterable<string>): Promise<void> {
  for await (const chunk of chunks) if (!process.stdout.write(chunk)) await once(process.stdout, 'drain');
}

function saidForTheCommandLine(error: unknown): never {
  if (!(error instanceof Problem) || error.code !== 'invalid_position') throw error;
  throw new UsageError(error.message.replace("'since'", '--since'));
}
