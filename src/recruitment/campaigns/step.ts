/**
 * The steps of a campaign: its emails, in their order, and the texts that each chooses from. `weight` (default 1) is that of the step's own text, beside the
 * weights of its variants: text 0 is the step's own, text 1 its first variant.
 */
import { createHash } from 'node:crypto';
import { z } from 'zod';
import { id, text } from '../../core/values/fields.ts';
import { newId } from '../../core/values/id.ts';
import { Problem } from '../../core/values/problem.ts';
import type { TemplateFault } from '../composing/template_fields.ts';
import { template_fields } from '../composing/template_fields.ts';

export const most_steps = 8;
export const most_variants = 9;
const most_weight = 1000;

const variables = Object.entries(template_fields)
  .map(([name, meaning]) => `\`${name}\`: ${meaning}.`)
  .join(' ');
const subject_doc = `The subject, a Liquid template. Required for the first step. A follow-up is sent in the thread of the first email, with the subject of that email after \`Re:\`. Variables: ${variables}`;
const body_text_doc = 'The text of the email, a Liquid template with the same variables as `subject`.';
const body_html_doc =
  'The HTML of the email, a Liquid template. Null: it is made from the text. The footer is added to both.';
const weight_doc = (what: string) =>
  `How often ${what} is chosen, in proportion to the weights of the other texts of the step. 0: never, unless all weights are 0.`;

const texts = {
  subject: text.min(1).max(1000).optional().describe(subject_doc),
  body_text: text.min(1).max(20_000).describe(body_text_doc),
  body_html: text.min(1).max(60_000).nullable().default(null).describe(body_html_doc),
};
/** The step of an email that is asked for. */
export const step_index = z
  .int()
  .min(0)
  .max(most_steps - 1)
  .default(0)
  .describe('The step: 0 is the first.');
/** The text of that step. */
export const variant = z.int().min(0).max(most_variants);
const weight = z.int().min(0).max(most_weight).default(1);
const delay_days = z.int().min(0).max(365);
const delay_doc =
  'The least number of calendar days between the previous email and this one. For the first step: between the scheduling of the prospect and the email, 0 by default. Required for follow-ups.';

export const StepBody = z.strictObject({
  id: id('fst')
    .optional()
    .describe('The id of a step of the campaign (`fst_…`), which is kept. If it is not sent, the step is new.'),
  delay_days: delay_days.optional().describe(delay_doc),
  weight: weight.describe(weight_doc("the step's own text")),
  ...texts,
  variants: z
    .array(z.strictObject({ weight: weight.describe(weight_doc('the variant')), ...texts }))
    .max(most_variants)
    .default([])
    .describe(
      `Up to ${most_variants} other texts of the step, to find out which works best. Each sequence gets one of the texts, and keeps it.`,
    ),
});
export type StepBody = z.infer<typeof StepBody>;

const shown_texts = {
  weight: z.int().describe('How often the text is chosen, in proportion to the others.'),
  subject: text.describe('The subject, a template.'),
  body_text: text.describe('The text, a template.'),
  body_html: text.nullable().describe('The HTML, a template. Null: it is made from the text.'),
};
export const Step = z.object({
  id: id('fst').describe('The id of the step.'),
  delay_days: z
    .int()
    .describe(
      'The least number of calendar days between the previous email and this one. For the first step: between the scheduling of the prospect and the email.',
    ),
  ...shown_texts,
  variants: z.array(z.object(shown_texts)).describe('Other texts of the step.'),
});
export type Step = z.infer<typeof Step>;

/** The texts of a step: 0 is its own, 1 its first variant. */
export const textsOf = ({ weight: own, subject, body_text, body_html, variants }: Step) => [
  { weight: own, subject, body_text, body_html },
  ...variants,
];

/**
 * The templates of a text that are rendered. A follow-up has the subject of the email before it: its own is not shown, and a value that it lacks is none that the email
 * lacks.
 */
export function templatesOf(step: Step, { step_index, variant }: { step_index: number; variant: number }) {
  const text = textsOf(step)[variant] as ReturnType<typeof textsOf>[number];
  return step_index === 0 ? text : { ...text, subject: 'Re:' };
}

/** Chooses the text that a sequence gets: the same one each time. */
export const variantFor = (
  step: Step,
  { sequence_id, step_index }: { sequence_id: string; step_index: number },
): number =>
  chooseVariant({ weights: textsOf(step).map(({ weight }) => weight), seed: `${sequence_id} ${step_index}` });

/**
 * The steps of a request as they are stored: a step that names none of the campaign's ids is new.
 * @throws Problem invalid_parameter, missing_parameter with the path of the field
 */
export async function stepsOf(given: StepBody[], before: Step[] = []): Promise<Step[]> {
  requireOwnIds(given, before);
  const { checkTemplates } = await import('../composing/templates.ts');
  return given.map((step, nth) => {
    requireDelay(step, nth);
    const { id: known, delay_days: delay = 0, variants, ...own } = step;
    const path = `steps.${nth}`;
    const subject = nth === 0 ? undefined : given[0]?.subject;
    const check = <Given extends Texts>(texts: Given, at: string) => checked(texts, at, subject, checkTemplates);
    return {
      ...{ id: known ?? newId('fst'), delay_days: delay, ...check(own, path) },
      variants: variants.map((variant, other) => check(variant, `${path}.variants.${other}`)),
    };
  });
}

interface Texts {
  subject?: string | undefined;
  body_text: string;
  body_html: string | null;
}

/**
 * Texts whose templates hold, with a subject.
 * @param first the subject of the first step, which follow-ups may leave out
 * @throws Problem invalid_parameter, missing_parameter
 */
function checked<Given extends Texts>(
  given: Given,
  path: string,
  first: string | undefined,
  checkTemplates: (templates: Required<Texts>) => TemplateFault[],
): Given & { subject: string } {
  const { subject = first } = given;
  if (subject === undefined) {
    const param = `${path}.subject`;
    throw new Problem('missing_parameter', `'${param}' is required for the first step.`, { param });
  }
  const [fault] = checkTemplates({ ...given, subject });
  if (fault) throw faultyTemplate(fault, path);
  return { ...given, subject };
}

function requireOwnIds(given: StepBody[], before: Step[]): void {
  const known = new Set(before.map((step) => step.id));
  for (const [nth, { id: step_id }] of given.entries()) {
    if (step_id === undefined || known.delete(step_id)) continue;
    const param = `steps.${nth}.id`;
    throw new Problem(
      'invalid_parameter',
      `'${param}' is not a step of the campaign, or is named twice. Leave it out to add a step.`,
      { param },
    );
  }
}

function requireDelay({ delay_days: delay }: StepBody, nth: number): void {
  if (nth === 0 || delay !== undefined) return;
  const param = `steps.${nth}.delay_days`;
  throw new Problem('missing_parameter', `'${param}' is required for a follow-up.`, { param });
}

/** @param path of what holds the templates: `steps.0.variants.1` */
function faultyTemplate({ field, line, message, remedy }: TemplateFault, path: string): Problem {
  const param = `${path}.${field}`;
  return new Problem('invalid_parameter', `'${param}', line ${line}: ${message} ${remedy}`, { param });
}

/**
 * The place of the variant that a seed gets, in proportion to the weights: the same seed always gets the same one.
 * @param weights not negative; 0 is never chosen, unless all are 0: then it is the first
 * @param seed the sequence and its step
 */
export function chooseVariant({ weights, seed }: { weights: readonly number[]; seed: string }): number {
  const sum = weights.reduce((total, weight) => total + weight, 0);
  const hash = createHash('sha256').update(seed).digest().readUIntBE(0, 6);
  let rest = (hash / 2 ** 48) * sum;
  for (const [place, weight] of weights.entries()) {
    if (rest < weight) return place;
    rest -= weight;
  }
  return Math.max(
    0,
    weights.findLastIndex((weight) => weight > 0),
  );
}
