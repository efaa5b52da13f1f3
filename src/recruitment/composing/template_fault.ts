export type TemplateField = 'subject' | 'body_text' | 'body_html';

interface Place {
  field: TemplateField;
  /** From 1. */
  line: number;
  /** The variable that is unknown or has no value. */
  variable?: string | null;
  /** What to do. */
  remedy: string;
}

/** What is wrong with a template, or with the values that it is rendered with. */
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
