/**
 * Renders the texts of a campaign for the prospects that wait: what fails now would fail at its turn. Texts that name no prospect are rendered once; those with plain
 * variables alone once for each set of variables that have a value, so that 50,000 prospects take a second. Others may take more than the 5 seconds that there
 * are: these are checked when they are sent.
 */
import { setImmediate } from 'node:timers/promises';
import { Tokenizer, TypeGuards } from 'liquidjs';
import sql from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';
import { safeHtml } from '../composing/safe_text.ts';
import { knownValues, TemplateFault, type TemplateValues } from '../composing/template_fields.ts';
import { most_part_bytes, type Rendered, renderTemplates } from '../composing/templates.ts';
import type { Campaign } from './campaign.ts';
import { type Warning, warns } from './finding.ts';
import { templatesOf, textsOf } from './step.ts';
import { type ProspectValues, prospect_values, type Sending, templateValues } from './template_values.ts';

const page = 2000;
/** An answer takes 10 seconds at most. */
const most_ms = 5000;
/** So many are rendered before others get their turn. */
const renders_at_once = 50;

interface Templates {
  subject: string;
  body_text: string;
  body_html: string | null;
}

interface Text extends Templates {
  /** In the campaign: `steps.0` or `steps.0.variants.1`. */
  path: string;
  shape: Shape | undefined;
  /** The outcome of each shape. */
  known: Map<string, TemplateFault | undefined>;
}

interface Sender {
  from_name: string;
  email: string;
}

/** @param sender any inbox of the campaign: templates use what each of them has */
export async function checkRendering(
  tx: Tx,
  campaign: Campaign,
  brand: Sending,
  sender: Sender,
): Promise<{ warnings: Warning[]; rendered: number }> {
  const faults = new Map<string, { fault: TemplateFault; path: string; ids: string[]; count: number }>();
  const texts = campaign.steps.flatMap((step, nth) =>
    textsOf(step).map((_, variant) => {
      const templates = templatesOf(step, { step_index: nth, variant });
      return { ...templates, path: pathOf(nth, variant), shape: shapeOf(templates), known: new Map() };
    }),
  );
  // A text that names no prospect is the same for all.
  const own = texts.filter(({ subject, body_text, body_html }) =>
    /prospect/.test(`${subject} ${body_text} ${body_html}`),
  );
  const end = performance.now() + most_ms;
  let rendered = 0;
  let is_first = true;
  for await (const prospects of waitingOf(tx, campaign.id)) {
    for (const { id, ...prospect } of prospects) {
      if (rendered % renders_at_once === 0) await setImmediate();
      if (performance.now() > end) return { warnings: warningsOf(faults), rendered };
      const values = templateValues(prospect, brand, sender);
      const known_values = knownValues(values);
      for (const text of is_first ? texts : own) note(faults, text, id, faultOf(text, values, known_values));
      is_first = false;
      rendered += 1;
    }
  }
  return { warnings: warningsOf(faults), rendered };
}

const pathOf = (step: number, text: number): string =>
  text === 0 ? `steps.${step}` : `steps.${step}.variants.${text - 1}`;

async function* waitingOf(tx: Tx, campaign_id: string): AsyncGenerator<(ProspectValues & { id: string })[]> {
  for (let after = ''; ; ) {
    const rows = await tx.all<ProspectValues & { id: string }>(sql`
      select p.id, ${prospect_values}
      from recruitment.sequence s
      join recruitment.prospect p on p.organization_id = s.organization_id and p.id = s.prospect_id
      where s.organization_id = ${tx.organization_id} and s.campaign_id = ${campaign_id} and s.prospect_id > ${after}
        and s.open and s.state = 'waiting'
      order by s.prospect_id
      limit ${page}`);
    yield rows;
    if (rows.length < page) return;
    after = rows.at(-1)?.id as string;
  }
}

/** Renders a text, unless its outcome follows from its shape: that a value is missing, or that there is room for any. */
function faultOf(text: Text, values: TemplateValues, known_values: object): TemplateFault | undefined {
  const shape = text.shape?.(known_values);
  if (shape !== undefined && text.known.has(shape)) return text.known.get(shape);
  try {
    const rendered = renderTemplates(text, values);
    if (shape !== undefined && leavesRoom(text, bytesOf(rendered))) text.known.set(shape, undefined);
    return undefined;
  } catch (error) {
    if (!(error instanceof TemplateFault)) throw error;
    if (shape !== undefined && error.variable !== null) text.known.set(shape, error);
    return error;
  }
}

/** The size of its largest part. */
const bytesOf = ({ text, html }: Rendered): number =>
  Math.max(Buffer.byteLength(text), Buffer.byteLength(safeHtml(html)));

type Faults = Map<string, { fault: TemplateFault; path: string; ids: string[]; count: number }>;

function note(faults: Faults, { path }: Text, prospect_id: string, fault: TemplateFault | undefined): void {
  if (!fault) return;
  const key = `${path}.${fault.field} ${fault.message}`;
  const known = faults.get(key) ?? { fault, path, ids: [], count: 0 };
  if (known.ids.length < 10) known.ids.push(prospect_id);
  known.count += 1;
  faults.set(key, known);
}

const warningsOf = (faults: Faults): Warning[] =>
  [...faults.values()].map(({ fault, path, ids, count }) =>
    warns('template_error', {
      field: `${path}.${fault.field}`,
      message: `Line ${fault.line}: ${fault.message} ${fault.remedy}`,
      prospects: count,
      prospect_ids: ids,
    }),
  );

/** The values that a prospect has for the variables of a text: the same key, the same outcome. Undefined: it has to be rendered. */
type Shape = (known_values: object) => string | undefined;

/** Longer values are rendered: the size of the email may depend on them. */
const most_length = 200;
/** The most that a value of that length can add to a part, escaped and as a link. */
const most_growth_bytes = 3_200;
/** Nothing but a variable, with a default or without. */
const plain = /^\s*([\w.]+)\s*(?:\|\s*default:\s*(?:"[^"{}]*"|'[^'{}]*'|([\w.]+))\s*)?$/;
/** Properties that Liquid makes of values by itself. */
const computed = /\.(size|first|last)\b/;

/**
 * The shape of a text that has nothing but plain variables: no tags, and no filter but `default`. Whether it can be rendered depends on which
 * variables have a value, as long as its values are short.
 */
export function shapeOf({ subject, body_text, body_html }: Templates): Shape | undefined {
  const outputs = [subject, body_text, body_html ?? ''].map(outputsOf);
  if (outputs.includes(undefined)) return undefined;
  const paths = (outputs as string[][]).flat().flatMap((output) => pathsOf(output) ?? [undefined]);
  if (paths.includes(undefined)) return undefined;
  const used = [...new Set(paths as string[])].map((path) => path.split('.'));
  return (known_values) => {
    const kinds = used.map((path) => kindOf(known_values, path));
    return kinds.includes(undefined) ? undefined : kinds.join(' ');
  };
}

/**
 * Returns whether an email leaves room for whatever values of its shape.
 * @param bytes of its largest part, as it was rendered for one prospect
 */
const leavesRoom = ({ subject, body_text, body_html }: Text, bytes: number): boolean =>
  bytes + (`${subject}${body_text}${body_html}`.split('{{').length - 1) * most_growth_bytes <= most_part_bytes;

/** Undefined: it has tags. */
function outputsOf(template: string): string[] | undefined {
  const tokens = new Tokenizer(template).readTopLevelTokens();
  if (tokens.some((token) => !TypeGuards.isHTMLToken(token) && !TypeGuards.isOutputToken(token))) return undefined;
  return tokens.filter(TypeGuards.isOutputToken).map((token) => token.content);
}

/** Undefined: it is more than variables. */
function pathsOf(output: string): string[] | undefined {
  const [whole, path, other] = plain.exec(output) ?? [];
  if (whole === undefined || path === undefined || computed.test(whole)) return undefined;
  return other === undefined ? [path] : [path, other];
}

function kindOf(values: object, path: string[]): string | undefined {
  let value: unknown = values;
  for (const name of path) {
    if (value === undefined) break;
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
    value = Object.hasOwn(value, name) ? (value as Record<string, unknown>)[name] : undefined;
  }
  if (value === undefined || typeof value === 'number') return typeof value;
  return typeof value === 'string' && value.length <= most_length && /[\p{L}\p{N}]/u.test(value) ? 'text' : undefined;
}
