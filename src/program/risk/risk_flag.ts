import { z } from 'zod';
import { authorOf } from '../../core/access/api_key.ts';
import { idParams, type Operation, operation, readOperations } from '../../core/resource/operation.ts';
import { resource } from '../../core/resource/resource.ts';
import { type States, statusSchema, transition } from '../../core/resource/states.ts';
import { id, objectName, text, timestamp } from '../../core/values/fields.ts';
import { customers } from '../customers/customer.ts';
import { event } from '../events/event.ts';
import { program_id } from '../events/fields.ts';
import { partners } from '../partners/partner.ts';
import { programs } from '../programs/program.ts';
import { kinds, severities } from '../programs/raise_flag.ts';
import { click_velocity, conversion_velocity, refund_rate, same_ip } from './risk_threshold.ts';

const resolutions = ['confirmed', 'dismissed'] as const;

/** A resolution is the status that it leads to. */
export const risk_flag_states: States<'open' | (typeof resolutions)[number], (typeof resolutions)[number]> = {
  open: { doc: 'waiting for review', on: { confirmed: 'confirmed', dismissed: 'dismissed' } },
  confirmed: {
    doc: 'the suspicion was right',
    on: {},
    refusal: 'The risk flag is already confirmed. Only an open flag can be resolved.',
  },
  dismissed: {
    doc: 'the suspicion was wrong',
    on: {},
    refusal: 'The risk flag is already dismissed. Only an open flag can be resolved.',
  },
};

export const riskFlags = resource({
  object: 'risk_flag',
  plural: 'risk_flags',
  table: 'program.risk_flag',
  unique: { risk_flag_one_open: null },
  doc: 'A sign of possible fraud, raised by a monitoring rule and resolved by a person. There is at most one open flag of a kind for a partner or customer. Flags do not change commissions.',
  relations: { partner: partners, customer: customers },
  fields: {
    id: id('rsk'),
    object: objectName('risk_flag'),
    program_id,
    partner_id: id('part').nullable().describe('The partner concerned. Null if there is none.'),
    customer_id: id('cus').nullable().describe('The customer concerned. Null if there is none.'),
    kind: z
      .enum(kinds)
      .describe(
        `The rule that raised the flag. \`self_referral\`: the customer has the partner's email address, or signed up from the partner's browser. \`same_ip\`: more than ${same_ip.max} customers of the partner have the same IP address, by the newest ${same_ip.newest} clicks from it. \`click_velocity\`: more than ${click_velocity.max} clicks from one IP address within ${click_velocity.within}. \`conversion_velocity\`: more than ${conversion_velocity.max} first sales within ${conversion_velocity.within}. \`disposable_email\`: the customer used a disposable email address. \`blocked_country\`: a click came from a blocked country. \`paid_ad_traffic\`: a click came from a paid ad (\`gclid\`, \`fbclid\`, \`msclkid\` or a similar parameter). \`refund_rate\`: more than ${refund_rate.max_bps / 100}% of the sales amount was refunded, over at least ${refund_rate.min_sales} sales, the newest ${refund_rate.newest} within ${refund_rate.within}. \`duplicate_partner\`: another partner has the same email address. \`double_payout\`: a payout was paid twice, or after it was deleted; a clawback carries the excess. \`dispute\`: the customer disputed a charge at their bank.`,
      ),
    severity: z.enum(severities).describe('How serious the suspicion is.'),
    evidence: z.record(z.string(), z.json()).describe('The facts that raised the flag. The keys depend on the kind.'),
    status: statusSchema(risk_flag_states),
    note: text.nullable().describe('The note of the person who resolved the flag. Null while `open`.'),
    resolved_by: text
      .nullable()
      .describe(
        'Who resolved the flag: the user whose API key was used (`usr_…`), or the key (`key_…`) if it belongs to no user. Null while `open`.',
      ),
    resolved_at: timestamp.nullable().describe('When the flag was resolved. Null while `open`.'),
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
    summary: 'Resolves a risk flag. A note is required.',
    params: idParams,
    body: z.strictObject({
      resolution: z
        .enum(resolutions)
        .describe('The new status: `confirmed` if the suspicion was right, `dismissed` if it was wrong.'),
      note: text.trim().min(1).max(2000).describe('Why you confirm or dismiss the flag.'),
    }),
    reply: riskFlags.schema,
    errors: ['invalid_state_transition'],
    async run({ tx, params, body, caller }) {
      const { id, status: status_before } = await riskFlags.get(tx, params.id, { lock: true });
      const { resolution, note } = body;
      const status = transition(risk_flag_states, status_before, resolution);
      const resolved_by = await authorOf(tx, caller);
      const flag = await riskFlags.update(tx, id, { status, note, resolved_by, resolved_at: tx.now });
      tx.emit(event('risk_flag.resolved', flag, { note }));
      return flag;
    },
  }),
];
