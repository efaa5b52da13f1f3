/**
 * The variables of templates, and the faults that a template can have. `prospect.first_name` is `first_name` of the custom data: a prospect's name is mostly that of
 * a site.
 */
/** The variables that a template can use, and their meanings: the description of the API is derived from it. */
export const template_fields = {
  'prospect.name': 'The name of the site, the channel or the person',
  'prospect.first_name': 'The first name: `first_name` of the prospect’s custom data',
  'prospect.url': 'Where the prospect publishes',
  'prospect.key': 'The prospect in its channel: a domain, the id of a channel, a handle',
  'prospect.channel': 'The channel, such as `website` or `youtube`',
  'prospect.country_code': 'ISO 3166-1 alpha-2 country code',
  'prospect.language_code': 'ISO 639-1 language code',
  'prospect.custom.*': 'A field of the prospect’s custom data',
  'brand.name': 'The name of the brand',
  'brand.website_url': 'The website of the brand',
  'brand.sender_company': 'The company that sends the email',
  'sender.name': 'The name that the email is sent from: `from_name` of the inbox',
  'sender.email': 'The address that the email is sent from',
  'program.name': 'The name of the linked affiliate program',
} as const satisfies Record<string, string>;

type Text = string | null;

/** The values of one email. Null is a value that is not known. */
export interface TemplateValues {
  prospect: {
    name: Text;
    url: Text;
    key: Text;
    channel: Text;
    country_code: Text;
    language_code: Text;
    /** Plain JSON. */
    custom: Readonly<Record<string, unknown>>;
  };
  brand: { name: Text; website_url: Text; sender_company: Text };
  sender: { name: Text; email: Text };
  /** Null where the brand is linked to no program. */
  program: { name: Text } | null;
}

const roots = new Set(Object.keys(template_fields).map((field) => field.split('.')[0]));

/** Returns whether a template can use the variable that these names lead to, such as `['prospect', 'name']`. */
export function isTemplateField(path: readonly string[]): boolean {
  const [root, field] = path;
  if (root === 'prospect' && field === 'custom') return path.length > 2;
  return Object.hasOwn(template_fields, path.join('.'));
}

/** Names the variables to use in place of an unknown one. */
export function knownFields(root: string | undefined): string {
  const fields = Object.keys(template_fields);
  return (roots.has(root) ? fields.filter((field) => field.startsWith(`${root}.`)) : fields).join(', ');
}

/** The values as a template sees them: what is null or blank is not there at all. */
export function knownValues({ prospect, program, ...others }: TemplateValues): object {
  const first_name = Object.hasOwn(prospect.custom, 'first_name') ? prospect.custom.first_name : null;
  return known({ ...others, program: program ?? {}, prospect: { ...prospect, first_name } }) as object;
}

const most_depth = 20;

function known(value: unknown, depth = 0): unknown {
  if (typeof value === 'string') return /[^\s\p{Cc}]/u.test(value) ? value.toWellFormed() : undefined;
  if (value === null || typeof value !== 'object') return value ?? undefined;
  if (depth === most_depth) return undefined;
  if (Array.isArray(value)) return value.map((inner) => known(inner, depth + 1)).filter((inner) => inner !== undefined);
  const entries = Object.entries(value).map(([name, inner]) => [name, known(inner, depth + 1)] as const);
  return Object.fromEntries(entries.filter(([, inner]) => inner !== undefined));
}

export type TemplateField = 'subject' | 'body_text' | 'body_html';

interface Place {
  field: TemplateField;
  /** From 1. */
  line: number;
  /** The variable that is unknown or has no value. */
  variable?: string | null;
  /** The remedy. */
  remedy: string;
}

/** A fault of a template, or of the values that it is rendered with. */
export class TemplateFault extends Error {
  override readonly name = 'TemplateFault';
  readonly field: TemplateField;
  readonly line: number;
  readonly variable: string | null;
  readonly remedy: string;

  constructor(message: string, { field, line, variable = null, remedy }: Place) {
    super(message);
    this.field = field;
    this.line = line;
    this.variable = variable;
    this.remedy = remedy;
  }
}
