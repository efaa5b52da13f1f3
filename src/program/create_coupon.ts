import { createHash } from 'node:crypto';
import { z } from 'zod';
import type { Tx } from '../core/postgres/transaction.ts';
import { type Operation, operation } from '../core/resource/operation.ts';
import { timestampInput } from '../core/values/fields.ts';
import { currency } from '../core/values/money.ts';
import { Problem } from '../core/values/problem.ts';
import { accountOf, type Connection, currentConnection, processor_name } from './processors/connection.ts';
import { KeyRefused, ProcessorAway, promotion_durations } from './processors/processor.ts';
import { billing, isProcessorName } from './processors/processors.ts';
import { programs } from './programs/program.ts';
import { coupons, createCoupon, findTaken, NewCoupon, requireOwners, takenBy } from './tracking/coupon.ts';

/** Less than a request waits for its answer. */
const most_ms = 8_000;

const AtProcessor = z
  .strictObject({
    processor: processor_name.optional().describe('The default is the `processor` of the program.'),
    percent_off_bps: z.int().min(1).max(10_000).optional().describe('The discount in basis points: 2000 is 20 %.'),
    amount_off_minor: z
      .int()
      .min(1)
      .optional()
      .describe('The discount in minor units of `currency`. Send this or `percent_off_bps`.'),
    currency: currency.optional().describe('ISO 4217. Needed with `amount_off_minor`.'),
    duration: z
      .enum(promotion_durations)
      .default('once')
      .describe('`once`: the first payment. `repeating`: those of `duration_months`. `forever`: all.'),
    duration_months: z.int().min(1).max(36).optional().describe('Needed with `repeating`.'),
    max_redemptions: z
      .int()
      .min(1)
      .max(1_000_000_000)
      .optional()
      .describe('How often it can be used. The default is no limit.'),
    expires_at: timestampInput.optional().describe('When it can be used no more. The default is never.'),
  })
  .superRefine(({ percent_off_bps, amount_off_minor, currency: unit, duration, duration_months }, context) => {
    const refuse = (field: string, message: string) => context.addIssue({ code: 'custom', path: [field], message });
    if ((percent_off_bps === undefined) === (amount_off_minor === undefined))
      refuse('percent_off_bps', 'send either percent_off_bps or amount_off_minor');
    if ((amount_off_minor === undefined) !== (unit === undefined))
      refuse('currency', 'send currency with amount_off_minor, and only then');
    if ((duration === 'repeating') !== (duration_months !== undefined))
      refuse('duration_months', 'send duration_months with the duration repeating, and only then');
  });

const Body = NewCoupon.extend({
  create_at_processor: AtProcessor.optional().describe(
    'Creates the coupon at the billing processor too, with these terms, and matches sales by it. Send it in place of `external_id`.',
  ),
}).refine(({ external_id, create_at_processor }) => external_id === undefined || create_at_processor === undefined, {
  path: ['external_id'],
  message: 'send external_id for a coupon that exists at the processor, or create_at_processor to create one there',
});
type Body = z.infer<typeof Body>;

export const createCouponOperations: Operation[] = [
  operation({
    name: 'coupons.create',
    method: 'POST',
    path: '/v1/coupons',
    scope: 'coupons:write',
    summary: 'Creates a coupon.',
    doc: 'With `create_at_processor`, the coupon is created at the billing processor first, and its id there becomes the `external_id`: at Stripe a coupon with a promotion code, at Paddle a discount, at Chargebee a coupon whose id is the code. The stored key must be allowed to do that. What the processor refuses is answered with 400, and `param` names the field. If the answer is lost, send the request again: what was created at the processor is found by its code and terms, and is not created twice.',
    body: Body,
    reply: coupons.schema,
    status: 201,
    errors: ['resource_already_exists'],
    async ask({ body, services, read }): Promise<{ external_id?: string }> {
      if (!body.create_at_processor) return {};
      const connection = await read((tx) => connectionFor(tx, body));
      const account = accountOf(services, connection, AbortSignal.timeout(most_ms));
      const { program_id, code, create_at_processor } = body;
      const promotion = { program_id, code, ...create_at_processor, key: keyOf(body) };
      const { createPromotion, title } = billing[connection.processor];
      return { external_id: await createPromotion(account, promotion).catch(translated(title)) };
    },
    run: ({ tx, body: { create_at_processor: _, ...given }, asked }) => createCoupon(tx, { ...given, ...asked }),
  }),
];

/** Refuses what would be refused afterwards, so that nothing is created in vain. @throws Problem */
async function connectionFor(tx: Tx, body: Body): Promise<Connection> {
  await requireOwners(tx, body);
  const taken = await findTaken(tx, body);
  if (taken) throw takenBy(body, taken);
  const program = await programs.get(tx, body.program_id);
  const processor = body.create_at_processor?.processor ?? program.processor;
  const connection =
    processor !== null && isProcessorName(processor) ? await currentConnection(tx, program.id, processor) : undefined;
  if (connection?.status === 'connected') return connection;
  throw new Problem(
    'invalid_parameter',
    connection
      ? `${billing[connection.processor].title} refuses the key of the program. Set its credentials again with PUT /v1/programs/{id}/processors/${connection.processor}.`
      : 'The program is not connected to this billing processor. Connect it with PUT /v1/programs/{id}/processors/{processor}.',
    { param: 'create_at_processor.processor' },
  );
}

/** The same for requests that ask for the same coupon. */
const keyOf = ({ program_id, code, create_at_processor }: Body): string => {
  const terms = Object.entries(create_at_processor ?? {})
    .filter(([name, value]) => name !== 'processor' && value !== undefined)
    .sort(([one], [other]) => (one < other ? -1 : 1));
  const digest = createHash('sha256')
    .update(JSON.stringify([program_id, code.toLowerCase(), terms]))
    .digest('hex');
  return `rail_${digest.slice(0, 32)}`;
};

/** Turns what goes wrong at the processor into the problem of the request: a field of the terms is one of `create_at_processor`. */
const translated =
  (title: string) =>
  (error: unknown): never => {
    if (error instanceof ProcessorAway)
      throw new Problem(
        'service_unavailable',
        `${title} does not answer. Send the request again: nothing is created twice.`,
        {
          headers: { 'Retry-After': '5' },
        },
      );
    if (error instanceof KeyRefused)
      throw new Problem('invalid_parameter', `${title} refuses the key: ${error.message}`, {
        param: 'create_at_processor',
      });
    if (!(error instanceof Problem)) throw error;
    const { param } = error.details;
    const field = param === 'code' ? 'code' : ['create_at_processor', ...(param ? [param] : [])].join('.');
    throw new Problem(error.code, error.message, { param: field });
  };
