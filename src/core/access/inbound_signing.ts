import sql from 'sql-template-tag';
import { z } from 'zod';
import { type Operation, operation } from '../resource/operation.ts';
import { id, objectName, timestamp } from '../values/fields.ts';

const required = z.boolean().describe('Whether every request with the key must be signed.');

const InboundSigning = z
  .object({ object: objectName('inbound_signing'), key_id: id('key'), required, updated_at: timestamp })
  .meta({ id: 'InboundSigning', description: 'Whether requests with a key must be signed.' });

export const inboundSigningOperations: Operation[] = [
  operation({
    name: 'inbound_signing.set',
    title: 'Require signed requests',
    method: 'POST',
    path: '/v1/inbound_signing',
    scope: 'keys:write',
    summary: 'Makes signatures mandatory for the API key of this request, or optional again.',
    doc: 'The setting applies within a second. When signatures are required, an unsigned request with the key answers 401 `signature_required`, also one that this documentation sends, since it cannot sign. A signature does not prevent replays: whoever captures a signed request can send it again for five minutes. If the holder of a key cannot sign, the operator lifts the requirement with `npx --no rail key update <id> --signature optional`.',
    body: z.strictObject({ required }),
    example: { required: false },
    reply: InboundSigning,
    async run({ tx, body, caller }) {
      return tx.one<z.infer<typeof InboundSigning>>(sql`
        update core.api_key
        set signature_required = ${body.required}, updated_at = ${tx.now}::timestamptz
        where organization_id = ${tx.organization_id} and id = ${caller.api_key_id}
        returning 'inbound_signing' as object, id as key_id, signature_required as required, updated_at`);
    },
  }),
];
