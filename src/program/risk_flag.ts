import { z } from 'zod';
import { id, objectName, requireState, text, timestamp } from '../core/fields.ts';
import { idParams, type Operation, operation, readOperations } from '../core/operation.ts';
import { resource } from '../core/resource.ts';
import { customer } from './customer.ts';
import { event } from './event.ts';
import { partner } from './partner.ts';
import { program } from './program.ts';
import { kinds, severities } from './risk_raise.ts';

const resolutions = ['confirmed', 'dismissed'] as const;

export const riskFlag = resource({
  object: 'risk_flag',
  plural: 'risk_flags',
  table: 'program.risk_flag',
  doc: 'What a monitoring rule noticed, until a person closes it with a note. One is open per kind and subject.',
  relations: { partner, customer },
  fields: {
    id: id('rsk'),
    object: objectName('risk_flag'),
    program_id: id('prg'),
    partner_id: id('part').nullable(),
    customer_id: id('cus').nullable(),
    kind: z.enum(kinds),
    severity: z.enum(severities),
    evidence: z.record(z.string(), z.json()).describe('What was noticed; the keys depend on the kind.'),
    status: z.enum(['open', ...resolutions]),
    note: text.nullable(),
    resolved_by: text.nullable().describe('A user, or the API key (`key_…`) that closed it.'),
    resolved_at: timestamp.nullable(),
    created_at: timestamp,
    updated_at: timestamp,
  },
});

export type RiskFlag = z.infer<typeof riskFlag.record>;

export const riskFlagOperations: Operation[] = [
  ...readOperations({ of: riskFlag, within: program, by: ['status', 'kind', 'severity', 'partner_id', 'customer_id'] }),
  operation({
    name: 'risk_flags.resolve',
    method: 'POST',
    path: '/v1/risk_flags/{id}/resolve',
    scope: 'risk_flags:write',
    summary: 'Closes a risk flag. A note is required.',
    params: idParams,
    body: z.strictObject({ resolution: z.enum(resolutions), note: text.trim().min(1).max(2000) }),
    reply: riskFlag.schema,
    async run({ tx, params, body, caller }) {
      const before = await riskFlag.get(tx, params.id, { lock: true });
      requireState(before.status === 'open', `The flag is ${before.status}: only an open one can be closed.`);
      const resolved_by = caller.api_key_id;
      const { resolution: status, note } = body;
      const after = await riskFlag.update(tx, before.id, { status, note, resolved_by, resolved_at: tx.now });
      const { id: risk_flag_id, program_id, partner_id, customer_id, kind, severity } = after;
      tx.emit(
        event('risk_flag.resolved', program_id, {
          risk_flag_id,
          partner_id,
          customer_id,
          kind,
          severity,
          status,
          note,
          resolved_by,
        }),
      );
      return after;
    },
  }),
];
