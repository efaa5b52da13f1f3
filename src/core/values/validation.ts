import type { ZodError } from 'zod';
import { Problem } from './problem.ts';

type Issue = ZodError['issues'][number];

/**
 * The first thing that is wrong with the input, as a problem that names the field and what is allowed.
 * @param place where the input stood: `body`, `querystring`, `params`  @param input as it was given
 */
export function validationProblem(
  { issues: [first] }: Pick<ZodError, 'issues'>,
  place: string,
  input: unknown,
): Problem {
  const issue = first as Issue;
  const path = issue.path.map(String);
  if (issue.code === 'unrecognized_keys') {
    const name = [...path, issue.keys[0]].join('.');
    return new Problem(
      'unknown_parameter',
      `'${name}' is not a parameter of this request. Remove it, or check its spelling.`,
      {
        param: name,
      },
    );
  }
  const [field] = path;
  if (place === 'querystring' && (field === 'expand' || field === 'include')) {
    const allowed = issue.code === 'invalid_value' ? `may name: ${issue.values.join(', ')}` : 'is not supported here';
    return new Problem(`invalid_${field}`, `'${field}' ${allowed}.`, { param: field });
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

export const lowerFirst = (text: string): string => text.charAt(0).toLowerCase() + text.slice(1);
