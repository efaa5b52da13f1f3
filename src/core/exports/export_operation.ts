import { z } from 'zod';
import { type Operation, operation } from '../resource/operation.ts';
import type { AnyResource } from '../resource/resource.ts';
import { requireScope } from '../resource/scope.ts';
import { sampleId } from '../values/fields.ts';
import { type Feed, linesOf, personal_scope, seesPersonal } from './feed.ts';
import { position_days } from './position.ts';

/** The fields of each line that are not of its resource. */
const Line = z
  .looseObject({
    object: z.string().describe('The type of the object, or `export_position` on the last line.'),
    id: z.string().optional().describe('The id of the object. Not on the last line.'),
    deleted: z.literal(true).optional().describe('Only on a deleted object, which has no other fields.'),
    resource: z.string().optional().describe('Only on the last line: the resource of the export.'),
    position: z.string().optional().describe('Only on the last line: the `since` of the next export.'),
  })
  .describe(
    'NDJSON: on each line an object of the resource with its fields, or a deleted object, and on the last line the next position.',
  );

/** The change feed of a product's resources. */
export function exportOperations(feed: Feed): Operation[] {
  const { resources, personal, own_id_fields, personal_fields } = feed;
  const by_name = new Map(resources.map((resource) => [resource.plural, resource]));
  const names = [...by_name.keys()] as [string, ...string[]];
  const params = z.strictObject({ resource: z.enum(names).describe('What to export.') });
  return [
    operation({
      name: 'exports.get',
      title: 'Export changed objects',
      method: 'GET',
      path: '/v1/exports/{resource}',
      scope: 'data:read',
      summary: 'Exports all objects of a resource, or those that changed since a position, as NDJSON.',
      doc: `Without \`since\`, every object of the organization. With it, each object that was created, changed or deleted since that position, once, as it is now: an object that is deleted is \`{id, object, deleted: true}\`, even if you never received it. Write the objects to your warehouse by their ids, then keep the position of the last line for the next request. The objects are in no particular order. They are streamed, with the limits of NDJSON that *Lists* names. To export objects with personal data (${named(personal.map(({ plural }) => plural))}), the key also needs \`data:personal\`, or the scope that reads them one by one, such as \`customers:read\`. Without one of these, email addresses in texts and URLs are replaced by \`hidden\` (but not in ids that you set: ${named(own_id_fields)}), and ${fieldsOf(personal_fields)} is null.

The last line is \`{"object": "export_position", "resource", "position"}\`. A response without it is incomplete: discard it, and repeat the request.

No change is missed, however long its transaction took: a position records what the export could see, not when it ran. It can be used for ${position_days} days, any number of times. After that, or if the database was restored to a time before it, it is refused with \`invalid_position\`: export without \`since\`, and replace what you have.`,
      params,
      query: z.strictObject({
        since: z
          .string()
          .min(1)
          .optional()
          .meta({
            description: 'The position at the end of an earlier export of the resource.',
            examples: [sampleId('pos')],
          }),
      }),
      reply: Line.meta({
        examples: [{ object: 'export_position', resource: names[0], position: sampleId('pos') }],
      }),
      errors: ['invalid_position'],
      is_feed: true,
      run: () => Promise.reject(new Error('An export is always streamed.')),
      async stream({ tx, params: { resource }, query: { since }, caller }) {
        const found = by_name.get(resource) as AnyResource;
        const sees_personal = seesPersonal(caller.scopes, found);
        if (personal.includes(found) && !sees_personal) requireScope(caller.scopes, personal_scope);
        return linesOf(tx, feed, found, { since, sees_personal });
      },
    }),
  ];
}

const fieldsOf = (fields: Record<string, string[]>): string =>
  list.format(Object.entries(fields).map(([plural, names]) => `${named(names)} of \`${plural}\``));

const list = new Intl.ListFormat('en');
const named = (names: string[]): string => list.format(names.map((name) => `\`${name}\``));
