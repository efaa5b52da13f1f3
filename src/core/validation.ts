import type { ZodError } from 'zod';
import { Problem } from './problem.ts';

type Issue = ZodError['issues'][number];

/**
 * The first thing that is wrong with the input, as a problem that names the field and what would be right.
 * @param place where the input stood: `body`, `querystring`, `params`  @param input as it was given
 */
export function validationProblem(error: ZodError, place: string, input: unknown): Problem {
  const issue = error.issues[0] as Issue;
  const path = issue.path.map(String);
  if (issue.code === 'unrecognized_keys') {
    const name = [...path, issue.keys[0]].join('.');
    return new Problem('unknown_parameter', `'${name}' is not a known field here. Remove it, or check its spelling.`, {
      param: name,
    });
  }
  const [field] = path;
  if (place === 'querystring' && (field === 'expand' || field === 'include')) {
    return new Problem(`invalid_${field}`, `'${field}' may name: ${allowedValues(issue)}.`, { param: field });
  }
  const param = path.join('.');
  const given = path.reduce<unknown>((value, key) => (value as Record<string, unknown> | undefined)?.[key], input);
  if (given === undefined) {
    const subject = param === '' ? 'The body is' : `'${param}' is`;
    return new Problem(
      'missing_parameter',
      `${subject} required: ${lowerFirst(issue.message)}.`,
      param === '' ? {} : { param },
    );
  }
  if (param === '') return new Problem('invalid_parameter', `The ${place} is not valid: ${lowerFirst(issue.message)}.`);
  return new Problem('invalid_parameter', `'${param}' is not valid: ${lowerFirst(issue.message)}.`, { param });
}

const allowedValues = (issue: Issue): string => (issue.code === 'invalid_value' ? issue.values.join(', ') : 'nothing');

const lowerFirst = (text: string): string => text.charAt(0).toLowerCase() + text.slice(1);
