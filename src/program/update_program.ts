import { isDeepStrictEqual } from 'node:util';
import sql from 'sql-template-tag';
import { z } from 'zod';
import type { Tx } from '../core/postgres/transaction.ts';
import { idParams, type Operation, operation } from '../core/resource/operation.ts';
import { tenant } from '../core/resource/resource.ts';
import { requireScope } from '../core/resource/scope.ts';
import { requireState } from '../core/values/fields.ts';
import { alreadyExists } from '../core/values/problem.ts';
import { lockValues } from './partners/handle.ts';
import { links } from './partners/link.ts';
import { connectionsOf } from './processors/connection.ts';
import { type Program, programs, refuseOwnCurrency, refuseTakenDomain, settings } from './programs/program.ts';
import { termsAfter } from './programs/terms.ts';

const ProgramChanges = z.strictObject(settings).partial();

/** The settings that decide whether money moves without a person, without a second one, and how much: only `payouts:send` moves money. */
export const sending_settings = [
  'payout_approval_required',
  'auto_payouts_enabled',
  'payout_limit_minor',
  'payout_limits',
] as const satisfies (keyof Program)[];

export const updateProgramOperations: Operation[] = [
  operation({
    name: 'programs.update',
    method: 'PATCH',
    path: '/v1/programs/{id}',
    scope: 'programs:write',
    summary: "Updates a program's settings.",
    doc: "Only the fields in the request change. Existing commissions keep their amounts and dates: a new holding period applies to later commissions only. A parameter cannot be added to `url_params` while a link with this parameter has the value of another partner's handle: the response is 409 with the link under `existing`. A change of `payout_approval_required`, `auto_payouts_enabled`, `payout_limit_minor` or `payout_limits` requires the scope `payouts:send`, too. While the program is connected to billing processors, `processor` can only be one of them.",
    params: idParams,
    body: ProgramChanges,
    reply: programs.schema,
    errors: ['resource_already_exists', 'invalid_state_transition'],
    async run({ tx, params, body, caller, services }) {
      if (body.url_params) await lockValues(tx, params.id);
      const before = await programs.get(tx, params.id, { lock: true });
      refuseOwnCurrency(before.currency, body);
      const { processor = before.processor } = body;
      if (processor !== before.processor) await refuseUnconnected(tx, before, processor, services.base_url);
      if (changesSending(before, body)) requireScope(caller.scopes, 'payouts:send');
      const questions = body.questions && JSON.stringify(body.questions);
      const values = { ...body, ...termsAfter(before, body, tx.now), questions };
      const after = await programs.update(tx, params.id, values).catch(refuseTakenDomain);
      await refuseSharedValues(tx, before, after);
      return after;
    },
  }),
];

/** Of customers who become known, the charges are looked for at the program's processor. @throws Problem invalid_state_transition */
async function refuseUnconnected(tx: Tx, { id }: Program, processor: Program['processor'], base_url: string) {
  const connections = await connectionsOf(tx, id, base_url);
  const names = connections.map((one) => one.processor);
  requireState(
    names.length === 0 || names.some((name) => name === processor),
    `The program is connected to ${names.join(' and ')}. To set another processor, delete the connection first: DELETE /v1/programs/${id}/processors/${names[0]}.`,
  );
}

const changesSending = (before: Program, changes: z.infer<typeof ProgramChanges>): boolean =>
  sending_settings.some((name) => changes[name] !== undefined && !isDeepStrictEqual(changes[name], before[name]));

/**
 * Under a parameter that becomes one of the program's `url_params`, no value may stand for two partners.
 * @throws Problem resource_already_exists with the link whose value is another partner's handle
 */
async function refuseSharedValues(tx: Tx, before: Program, after: Program): Promise<void> {
  const added = after.url_params.filter((param) => !before.url_params.includes(param));
  if (added.length === 0) return;
  const shared = await tx.maybe<{ link_id: string; param: string; value: string }>(sql`
    select t.link_id, t.param, t.value
    from program.tracking_value t
    join program.tracking_value h on h.organization_id = t.organization_id and h.program_id = t.program_id
      and h.param = t.param and h.value = t.value and h.link_id is null and h.partner_id <> t.partner_id
    where ${tenant(tx)} and t.program_id = ${after.id} and t.param = any(${added}) and t.link_id is not null
    limit 1`);
  if (!shared) return;
  throw alreadyExists(
    'url_params',
    `A link with ${shared.param}=${shared.value} exists, and '${shared.value}' is the handle of another partner, or was until recently. Delete the link first.`,
    await links.get(tx, shared.link_id),
  );
}
