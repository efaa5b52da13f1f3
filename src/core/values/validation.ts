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
  const issue = nearest(first as Issue);
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
  const subject = param === '' ? `The ${places[place] ?? place}` : `'${param}'`;
  const details = param === '' ? {} : { param };
  const given = path.reduce<unknown>((value, key) => (value as Record<string, unknown> | undefined)?.[key], input);
  if (given === undefined) {
    const condition = issue.code === 'custom' ? `: ${lowerFirst(issue.message)}` : '';
    return new Problem('missing_parameter', `${subject} is required${condition}.`, details);
  }
  const is_repeated = place === 'querystring' && Array.isArray(given) && !('origin' in issue);
  const reason = is_repeated ? `is given ${given.length} times. Give it once` : predicate(issue);
  return new Problem('invalid_parameter', `${subject} ${reason}.`, details);
}

const places: Record<string, string> = { querystring: 'query', params: 'path' };

/** Returns the reason why a value is invalid, without its name: `must be at least 0`. */
export const reasonOf = (issue: Issue): string => predicate(nearest(issue));

export const lowerFirst = (text: string): string => text.charAt(0).toLowerCase() + text.slice(1);

/** Returns the fault of the alternative that the input comes nearest to: the right type of value, and the fewest mistakes in it. */
function nearest(issue: Issue): Issue {
  if (issue.code !== 'invalid_union' || hasOwnWords(issue)) return issue;
  const near = issue.errors.filter((mistakes) => !mistakes.some(isOtherType));
  const [best] = near.sort((one, other) => one.length - other.length);
  const [mistake] = best ?? [];
  return mistake ? nearest({ ...mistake, path: [...issue.path, ...mistake.path] } as Issue) : issue;
}

const isOtherType = ({ code, path }: { code: string; path: PropertyKey[] }): boolean =>
  path.length === 0 && (code === 'invalid_type' || code === 'invalid_value');

/** `must have at least 1 character`: what the schema says of itself, else the rule that is broken. */
function predicate(issue: Issue): string {
  if (!hasOwnWords(issue)) return rule(issue);
  const words = lowerFirst(issue.message);
  return /^(must|may|cannot|has|is)\b/.test(words) ? words : `is not valid: ${words}`;
}

/** Returns whether the schema has a message of its own: the library's messages begin otherwise. */
const hasOwnWords = ({ message }: Issue): boolean => !/^(Invalid|Too|Unrecognized)\b/.test(message);

function rule(issue: Issue): string {
  if (issue.code === 'invalid_type') return typeRule(issue.expected);
  if (issue.code === 'too_small') return boundRule(issue, Number(issue.minimum), bounds.least);
  if (issue.code === 'too_big') return boundRule(issue, Number(issue.maximum), bounds.most);
  if (issue.code === 'invalid_value') return valueRule(issue.values.map(String));
  if (issue.code === 'invalid_format') return formats[issue.format] ?? 'does not have the required format';
  if (issue.code === 'not_multiple_of') return `must be a multiple of ${issue.divisor}`;
  if (issue.code !== 'invalid_union') return 'is not valid';
  const { options = [] } = issue as { options?: unknown[] };
  return options.length > 0 ? valueRule(options.map(String)) : unionRule(issue.errors.flat() as Issue[]);
}

const types: Record<string, string> = {
  ...{ string: 'a string', number: 'a number', int: 'an integer', boolean: 'true or false' },
  ...{ object: 'an object', record: 'an object', array: 'an array', null: 'null' },
};

const typeRule = (expected: string): string => {
  const type = types[expected];
  return type ? `must be ${type}` : 'is not allowed here';
};

const valueRule = ([only, ...others]: string[]): string =>
  others.length === 0 ? `must be ${only}` : `must be one of: ${[only, ...others].join(', ')}`;

const formats: Record<string, string> = {
  ...{ datetime: 'must be an ISO 8601 time, such as 2026-01-31T12:00:00Z', date: 'must be a date, such as 2026-01-31' },
  ...{ url: 'must be a URL', email: 'must be an email address, such as ada@example.com' },
};

const bounds = {
  least: { length: 'at least', inclusive: 'at least', exclusive: 'greater than' },
  most: { length: 'at most', inclusive: 'at most', exclusive: 'less than' },
};
const units: Record<string, string> = { string: 'character', array: 'item', set: 'item' };

function boundRule(
  { origin, inclusive = true, exact = false }: { origin: string; inclusive?: boolean; exact?: boolean },
  bound: number,
  words: (typeof bounds)['least'],
): string {
  const unit = units[origin];
  if (!unit) return `must be ${inclusive ? words.inclusive : words.exclusive} ${bound}`;
  return `must have ${exact ? 'exactly' : words.length} ${bound} ${unit}${bound === 1 ? '' : 's'}`;
}

/** Returns the rule where none of the alternatives has the type of the input: `must be a string or null`. */
function unionRule(issues: Issue[]): string {
  const rules = [...new Set(issues.map(rule))];
  const allowed = rules.filter((one) => one.startsWith('must be ')).map((one) => one.slice('must be '.length));
  return allowed.length > 0 && allowed.length === rules.length ? `must be ${allowed.join(' or ')}` : 'is not valid';
}
