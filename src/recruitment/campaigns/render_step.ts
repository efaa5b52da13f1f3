/** One text of a step, rendered for one prospect. */
import { newId } from '../../core/values/id.ts';
import { Problem } from '../../core/values/problem.ts';
import { messageIdOf, replySubject, threadHeaders } from '../composing/message_ids.ts';
import type { TemplateValues } from '../composing/template_fields.ts';
import { TemplateFault } from '../composing/template_fields.ts';
import { type Rendered, renderTemplates } from '../composing/templates.ts';
import type { Campaign } from './campaign.ts';
import { type Step, templatesOf, textsOf, variantFor } from './step.ts';

/** The text that is asked for: without a variant, the one that a sequence gets, else the step's own. */
interface Asked {
  step_index: number;
  variant?: number | undefined;
  /** Null: the prospect has none. */
  sequence_id: string | null;
}

/** @throws Problem invalid_parameter for a step or a text that there is not, and where the template cannot be rendered */
export function renderStep(campaign: Campaign, asked: Asked, values: TemplateValues): Rendered & { variant: number } {
  const step = stepOf(campaign, asked);
  const variant = asked.variant ?? variantOf(step, asked);
  if (!textsOf(step)[variant]) throw outOfRange('variant', `The highest of the step is ${step.variants.length}.`);
  const rendered = renderText(step, { step_index: asked.step_index, variant }, values);
  if (asked.step_index === 0) return { ...rendered, variant };
  const first = campaign.steps[0] as Step;
  const before = { step_index: 0, variant: variantOf(first, { ...asked, step_index: 0 }) };
  return { ...rendered, variant, subject: replySubject(renderText(first, before, values).subject) };
}

function stepOf({ steps }: Campaign, { step_index }: Asked): Step {
  const step = steps[step_index];
  if (step) return step;
  throw outOfRange(
    'step_index',
    steps.length === 0 ? 'The campaign has no steps.' : `The last step is ${steps.length - 1}.`,
  );
}

const outOfRange = (param: string, has: string): Problem =>
  new Problem('invalid_parameter', `'${param}' is too large. ${has}`, { param });

const variantOf = (step: Step, { step_index, sequence_id }: Asked): number =>
  sequence_id === null ? 0 : variantFor(step, { sequence_id, step_index });

function renderText(
  step: Step,
  { step_index, variant }: { step_index: number; variant: number },
  values: TemplateValues,
) {
  try {
    return renderTemplates(templatesOf(step, { step_index, variant }), values);
  } catch (error) {
    if (!(error instanceof TemplateFault)) throw error;
    const path = variant === 0 ? `steps.${step_index}` : `steps.${step_index}.variants.${variant - 1}`;
    const message = `'${path}.${error.field}', line ${error.line}: ${error.message} ${error.remedy}`;
    throw new Problem('invalid_parameter', message, { param: 'prospect_id' });
  }
}

/** The headers of a follow-up, whose emails before have ids that are made up. */
export function previousHeaders(step_index: number, domain: string) {
  if (step_index === 0) return {};
  const ids = Array.from({ length: step_index }, () => messageIdOf(newId('fms'), domain));
  return threadHeaders({ message_id: ids.at(-1) as string, references: ids.slice(0, -1).join(' ') || null });
}
