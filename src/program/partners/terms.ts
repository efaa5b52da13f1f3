import sql from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';
import { tenant } from '../../core/resource/resource.ts';
import { Problem } from '../../core/values/problem.ts';
import { type Program, programs } from '../programs/program.ts';
import { type Partner, partners } from './partner.ts';

type Terms = Pick<Program, 'terms_url' | 'terms_version'>;

/**
 * Returns what a partner has who accepts the terms now.
 * @param version the one that the partner has seen · @param now ISO 8601, UTC
 * @throws Problem invalid_parameter when it is not the program's current one
 */
export function acceptanceOf(
  { terms_url, terms_version }: Terms,
  version: string,
  now: string,
): { terms_accepted_at: string; terms_version: string } {
  if (terms_url !== null && version === terms_version) return { terms_accepted_at: now, terms_version: version };
  const current =
    terms_url === null ? 'The program has no terms' : `The current version of the terms is '${terms_version}'`;
  throw new Problem(
    'invalid_parameter',
    `${current}. 'terms_version' must be the version that the partner has seen and accepted.`,
    {
      param: 'terms_version',
    },
  );
}

/** Returns whether a partner has to accept the terms: never done, or of another version. */
export const mustAccept = (program: Terms, partner: Pick<Partner, 'terms_version'>): boolean =>
  program.terms_url !== null && program.terms_version !== partner.terms_version;

/** Accepts the terms of the program for a partner, who has seen this version. @throws Problem invalid_parameter when it is not the current one */
export async function acceptTerms(tx: Tx, partner_id: string, version: string): Promise<Partner> {
  const partner = await partners.get(tx, partner_id, { lock: true });
  const program = await programs.get(tx, partner.program_id, { lock: 'share' });
  const acceptance = acceptanceOf(program, version, tx.now);
  if (!mustAccept(program, partner)) return partner;
  await partners.update(tx, partner.id, acceptance);
  return completeOnboarding(tx, partner.id);
}

export type OnboardingStep = 'terms' | 'payout_method' | 'tax_form';

/** The steps that a partner still has to take before the first payout, in the order in which they are asked for. */
export async function openSteps(tx: Tx, partner: Partner): Promise<OnboardingStep[]> {
  const program = await programs.get(tx, partner.program_id);
  const { has_method, tax_form_status } = await tx.one<{ has_method: boolean; tax_form_status: string }>(sql`
    select t.tax_form_status, exists (
        select from program.payout_method m where m.organization_id = t.organization_id and m.partner_id = t.id
      ) as has_method
    from program.partner t where ${tenant(tx)} and t.id = ${partner.id}`);
  const lacks_form = program.require_tax_forms && !['submitted', 'verified'].includes(tax_form_status);
  return [
    ...(mustAccept(program, partner) ? (['terms'] as const) : []),
    ...(has_method ? [] : (['payout_method'] as const)),
    ...(lacks_form ? (['tax_form'] as const) : []),
  ];
}

/** Notes that a partner has done all of it, once: what the program asks for later does not undo that. */
export async function completeOnboarding(tx: Tx, partner_id: string): Promise<Partner> {
  const partner = await partners.get(tx, partner_id, { lock: true });
  if (partner.completed_onboarding || (await openSteps(tx, partner)).length > 0) return partner;
  return partners.update(tx, partner_id, { completed_onboarding: true });
}
