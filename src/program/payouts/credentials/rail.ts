import { z } from 'zod';
import { DeletedMarker, deletedMarker } from '../../../core/resource/deleted_marker.ts';
import { idParams, type Operation, operation } from '../../../core/resource/operation.ts';
import { text } from '../../../core/values/fields.ts';
import { programs } from '../../programs/program.ts';
import { isRailName, providerUrl } from '../rails/rails.ts';
import { type CheckedCredentials, deleteRail, putRail } from './rail_change.ts';
import { credentials_doc, parseCredentials, rail_methods, tryCredentials } from './rail_method.ts';
import { mode, RailRecord, railOf, railsOf } from './rail_record.ts';

const path = '/v1/programs/{id}/rails/{rail}';
const without_rail =
  'crypto has no credentials: send the payouts, export the file of the batch, pay, and mark each payout as paid with POST /v1/payouts/{id}/mark_paid';

const railParams = z.strictObject({
  id: idParams.shape.id,
  rail: z
    .enum(rail_methods, {
      error: ({ input }) => (input === 'crypto' ? without_rail : `must be one of: ${rail_methods.join(', ')}`),
    })
    .describe('The payout method that the credentials are for. `crypto` has none.'),
});

export const railOperations: Operation[] = [
  operation({
    name: 'rails.list',
    title: 'List the rails of a program',
    method: 'GET',
    path: '/v1/programs/{id}/rails',
    scope: 'payouts:read',
    summary: 'Lists the payout rails that a program has credentials for.',
    doc: 'There are five at most, so the list has one page.',
    params: idParams,
    reply: z.object({
      data: z.array(RailRecord).describe('The rails, by their names.'),
      has_more: z.literal(false).describe('Always false.'),
      total_count: z.int().describe('How many rails the program has credentials for.'),
    }),
    async run({ tx, params, services }) {
      await programs.get(tx, params.id);
      const data = await railsOf(tx, params.id, services.base_url);
      return { data, has_more: false as const, total_count: data.length };
    },
  }),
  operation({
    name: 'rails.get',
    title: 'Retrieve a rail',
    method: 'GET',
    path,
    scope: 'payouts:read',
    summary: 'Retrieves what is known of the credentials of a payout rail, without the credentials.',
    params: railParams,
    reply: RailRecord,
    async run({ tx, params, services }) {
      await programs.get(tx, params.id);
      return railOf(tx, params.id, params.rail, services.base_url);
    },
  }),
  operation({
    name: 'rails.put',
    title: 'Set the credentials of a rail',
    method: 'PUT',
    path,
    scope: 'payouts:send',
    summary: 'Sets the credentials that a program pays partners with, after trying them at the provider.',
    doc: `Credentials that the provider refuses are not kept: 400 \`invalid_parameter\`, and \`param\` names the field, as in \`credentials.client_secret\`. If the provider does not answer, the response is 503 and nothing is kept. Each change is a new \`version\`, also while payouts are processing: they keep theirs. The owner of the organization is emailed of each change.

The fields of \`credentials\`, by rail:

${credentials_doc}`,
    params: railParams,
    body: z.strictObject({
      mode,
      credentials: z.record(text, text).meta({
        description: 'The fields depend on the rail, as described above. They are tried, encrypted and never returned.',
        examples: [{ name: 'Acme GmbH', iban: 'DE89370400440532013000', bic: 'COBADEFFXXX' }],
      }),
    }),
    reply: RailRecord,
    async ask({ params: { rail }, body, services }): Promise<CheckedCredentials> {
      const credentials = parseCredentials(rail, body.credentials);
      const url = isRailName(rail) ? providerUrl(rail, body.mode, services.provider_urls) : '';
      return { credentials, ...(await tryCredentials(rail, credentials, { mode: body.mode, url })) };
    },
    run: ({ tx, params: { id: program_id, rail }, body, asked, caller, services }) =>
      putRail(tx, program_id, body.mode, asked, { rail, caller, services }),
  }),
  operation({
    name: 'rails.delete',
    title: 'Delete the credentials of a rail',
    method: 'DELETE',
    path,
    scope: 'payouts:send',
    summary: 'Deletes the credentials of a payout rail.',
    doc: 'Payouts by the rail cannot be sent until credentials are set again. While payouts by it are processing, the response is 409 `payout_locked`, since their outcome is asked for with the credentials. The owner of the organization is emailed.',
    params: railParams,
    reply: DeletedMarker,
    errors: ['payout_locked'],
    async run({ tx, params: { id: program_id, rail }, caller, services }) {
      return deletedMarker('rail', (await deleteRail(tx, program_id, { rail, caller, services })).id);
    },
  }),
];
