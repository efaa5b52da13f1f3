/** The questions that a program asks those who apply, and the check of their answers, as pure functions on plain values. */
import { z } from 'zod';
import { documentedEnum, notBlank, text } from '../../core/values/fields.ts';
import { Problem } from '../../core/values/problem.ts';

const kinds = {
  text: 'one line of text',
  long_text: 'text of several lines',
  url: 'the URL of a page',
  choice: 'one of `options`',
  choices: 'any of `options`, as a list',
  checkbox: 'true or false; `required` then means that it must be true',
} as const;

const question = z.strictObject({
  key: text
    .regex(
      /^[a-z][a-z0-9_]{0,63}$/,
      'must be 1 to 64 lowercase letters, digits or underscores, and start with a letter',
    )
    .describe('What the answer is called in `answers` of an application. Unique among the questions.'),
  label: notBlank(500).describe('The question, as applicants read it.'),
  kind: documentedEnum(kinds),
  required: z.boolean().default(false).describe('Whether an application without an answer is refused.'),
  options: z
    .array(notBlank(200))
    .max(50)
    .default([])
    .describe('What applicants choose from. Empty unless `choice` or `choices`.'),
});

export type Question = z.infer<typeof question>;

const most_questions = 30;

const offersOptions = ({ kind }: Question): boolean => kind === 'choice' || kind === 'choices';

/** The questions of a program, as a request sets them: all at once. */
export const questions = z
  .array(question)
  .max(most_questions)
  .superRefine((given, { addIssue }) => {
    given.forEach((one, at) => {
      const refuse = (field: keyof Question, message: string) =>
        addIssue({ code: 'custom', path: [at, field], message });
      if (given.findIndex(({ key }) => key === one.key) < at) refuse('key', 'is the key of another question');
      if (offersOptions(one) !== one.options.length > 0)
        refuse('options', offersOptions(one) ? 'must not be empty for this kind' : 'must be empty for this kind');
      if (new Set(one.options).size < one.options.length) refuse('options', 'must not name an option twice');
    });
  });

/** As they are stored and returned. */
export const storedQuestions = z
  .array(z.object(question.shape))
  .describe(
    'The questions that applicants answer. The page to join asks them, and `applications.create` refuses an application without the answers that are `required`. Other answers may be sent too.',
  );

const most_text = 10_000;

/**
 * Checks the answers of an applicant. Answers to what was not asked are left as they are: the form may be the merchant's own.
 * @throws Problem missing_parameter, invalid_parameter, naming `answers.<key>`
 */
export function checkAnswers(asked: readonly Question[], answers: Readonly<Record<string, unknown>>): void {
  for (const one of asked) {
    const answer = Object.hasOwn(answers, one.key) ? answers[one.key] : undefined;
    const param = `answers.${one.key}`;
    if (isMissing(answer)) {
      if (one.required) throw new Problem('missing_parameter', `'${param}' is required: ${one.label}`, { param });
      continue;
    }
    const fault = faultOf(one, answer);
    if (fault) throw new Problem('invalid_parameter', `'${param}' ${fault}.`, { param });
  }
}

function isMissing(answer: unknown): boolean {
  if (typeof answer === 'string') return answer.trim() === '';
  return answer === undefined || answer === null || (Array.isArray(answer) && answer.length === 0);
}

/** Returns what is wrong with an answer; undefined where nothing is. */
function faultOf({ kind, required, options }: Question, answer: unknown): string | undefined {
  if (kind === 'checkbox') {
    if (typeof answer !== 'boolean') return 'must be true or false';
    return required && !answer ? 'must be true' : undefined;
  }
  if (kind === 'choices') {
    const is_offered = Array.isArray(answer) && answer.every((one) => options.includes(one as string));
    return is_offered ? undefined : `must be a list of these: ${options.join(', ')}`;
  }
  if (kind === 'choice') return options.includes(answer as string) ? undefined : `must be one of ${options.join(', ')}`;
  if (typeof answer !== 'string' || answer.length > most_text)
    return `must be a text of at most ${most_text} characters`;
  if (kind === 'url' && !/^https?:\/\//i.test(answer.trim()))
    return 'must be a URL that starts with http:// or https://';
  return undefined;
}
