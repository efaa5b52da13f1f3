import { z } from 'zod';
import { idParams, type Operation, operation, readOperations } from '../../core/resource/operation.ts';
import { resource } from '../../core/resource/resource.ts';
import { id, objectName, requireState, text, timestamp } from '../../core/values/fields.ts';
import { customers } from '../customers/customer.ts';
import { event } from '../events/catalogue.ts';
import { partners } from '../partners/partner.ts';
import { programs } from '../programs/program.ts';
import { kinds, severities } from '../programs/raise_flag.ts';
import { totalOf } from '../programs/tally.ts';
import { click_velocity, conversion_velocity, refund_rate, same_address_most } from './risk_threshold.ts';

const resolutions = ['confirmed', 'dismissed'] as const;

export const riskFlags = resource({
  object: 'risk_flag',
  plural: 'risk_flags',
  table: 'program.risk_flag',
  unique: { risk_flag_one_open: null },
  total: totalOf('risk_flag'),
  doc: 'What a monitoring rule noticed, until a person closes it with a note. One is open per kind and subject.',
  relations: { partner: partners, customer: customers },
  fields: {
    id: id('rsk'),
    object: objectName('risk_flag'),
    program_id: id('prg'),
    partner_id: id('part').nullable().describe('The partner it is about. Null: none.'),
    customer_id: id('cus').nullable().describe('The customer it is about. Null: none.'),
    kind: z
      .enum(kinds)
      .describe(
        `What was noticed. \`self_referral\`: the customer has the partner's mailbox, or came by a browser from which somebody signed up with it. \`same_ip\`: more than ${same_address_most} customers of the partner from one address. \`click_velocity\`: more than ${click_velocity.most} clicks from one address within ${click_velocity.within}. \`conversion_velocity\`: more than ${conversion_velocity.most} first sales within ${conversion_velocity.within}. \`disposable_email\`: a throw-away address. \`blocked_country\`: a click from there. \`paid_ad_traffic\`: a click that was paid for at an ad network (\`gclid\`, \`fbclid\`, \`msclkid\` and their like). \`refund_rate\`: more than ${refund_rate.most_bps / 100} % of at least ${refund_rate.least_sales} sales in ${refund_rate.within} came back. \`duplicate_partner\`: the mailbox of another partner.`,
      ),
    severity: z.enum(severities).describe('How much it weighs.'),
    evidence: z.record(z.string(), z.json()).describe('What was noticed; the keys depend on the kind.'),
    status: z
      .enum(['open', ...resolutions])
      .describe(
        '`open` until a person closes it: `confirmed`, it was what it looked like, or `dismissed`. Neither changes commissions by itself.',
      ),
    note: text.nullable().describe('What the person wrote who closed it. Null while it is open.'),
    resolved_by: text.nullable().describe('A user, or the API key (`key_…`) that closed it.'),
    resolved_at: timestamp.nullable().describe('When it was closed. Null while it is open.'),
    created_at: timestamp,
    updated_at: timestamp,
  },
});

export type RiskFlag = z.infer<typeof riskFlags.record>;

export const riskFlagOperations: Operation[] = [
  ...readOperations({
    resource: riskFlags,
    within: programs,
    by: ['status', 'kind', 'severity', 'partner_id', 'customer_id'],
  }),
  operation({
    name: 'risk_flags.resolve',
    method: 'POST',
    path: '/v1/risk_flags/{id}/resolve',
    scope: 'risk_flags:write',
    summary: 'Closes a risk flag. A note is required.',
    params: idParams,
    body: z.strictObject({
      resolution: z.enum(resolutions).describe('The new status: it was what it looked like, or it was not.'),
      note: text.trim().min(1).max(2000).describe('What you found out.'),
    }),
    reply: riskFlags.schema,
    errors: ['invalid_state_transition'],
    async run({ tx, params, body, caller }) {
      const before = await riskFlags.get(tx, params.id, { lock: true });
      requireState(before.status === 'open', `The flag is ${before.status}: only an open one can be closed.`);
      const resolved_by = caller.api_key_id;
      const { resolution: status, note } = body;
      const after = await riskFlags.update(tx, before.id, { status, note, resolved_by, resolved_at: tx.now });
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
