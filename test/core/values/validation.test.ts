import t from 'tap';
import { z } from 'zod';
import type { Problem } from '../../../src/core/values/problem.ts';
import { validationProblem } from '../../../src/core/values/validation.ts';

const server = z.strictObject({ host: z.string(), port: z.int().max(65_535), security: z.enum(['tls', 'starttls']) });
const body = z.strictObject({
  name: z.string().min(1).max(5),
  code: z.string().length(2).optional(),
  weekday: z.int().min(1).max(7).optional(),
  share: z.number().positive().multipleOf(0.5).optional(),
  ids: z.array(z.string()).min(1).max(2).optional(),
  custom: z.record(z.string(), z.unknown()).optional(),
  reason: z.enum(['legal', 'competitor']).optional(),
  ok: z.literal(true).optional(),
  at: z.iso.datetime().optional(),
  limit: z.int('must be an integer from 1 to 100').optional(),
  note: z.string().regex(/a/, 'the note needs an a').optional(),
  smtp: z.union([z.null(), server]).optional(),
  ip: z.union([z.ipv4(), z.ipv6()], 'must be an IPv4 or IPv6 address').optional(),
  size: z.union([z.string(), z.number()]).optional(),
  run: z
    .discriminatedUnion('kind', [
      z.strictObject({ kind: z.literal('one'), id: z.string() }),
      z.strictObject({ kind: z.literal('two') }),
    ])
    .optional(),
});

function refusal(input: unknown): Problem {
  const { error } = body.safeParse(input);
  return validationProblem(error as z.ZodError, 'body', input);
}

t.test('says what a parameter must be, in words of its own', async (t) => {
  const smtp = { host: 'mail.example.com', port: 465, security: 'tls' };
  const cases: [object, string][] = [
    [{ name: undefined }, "'name' is required."],
    [{ name: 1 }, "'name' must be a string."],
    [{ name: '' }, "'name' must have at least 1 character."],
    [{ name: 'abcdef' }, "'name' must have at most 5 characters."],
    [{ code: 'abc' }, "'code' must have exactly 2 characters."],
    [{ weekday: 8 }, "'weekday' must be at most 7."],
    [{ weekday: 1.5 }, "'weekday' must be an integer."],
    [{ share: 0 }, "'share' must be greater than 0."],
    [{ share: 0.7 }, "'share' must be a multiple of 0.5."],
    [{ ids: [] }, "'ids' must have at least 1 item."],
    [{ ids: 'a' }, "'ids' must be an array."],
    [{ ids: [1] }, "'ids.0' must be a string."],
    [{ custom: 'a' }, "'custom' must be an object."],
    [{ reason: 'other' }, "'reason' must be one of: legal, competitor."],
    [{ ok: false }, "'ok' must be true."],
    [{ at: 'now' }, "'at' must be an ISO 8601 time, such as 2026-01-31T12:00:00Z."],
    [{ limit: 'all' }, "'limit' must be an integer from 1 to 100."],
    [{ note: 'b' }, "'note' is not valid: the note needs an a."],
    [{ smtp: { ...smtp, security: undefined } }, "'smtp.security' is required."],
    [{ smtp: { ...smtp, port: 70_000 } }, "'smtp.port' must be at most 65535."],
    [{ smtp: 'a' }, "'smtp' must be null or an object."],
    [{ ip: '1.2.3' }, "'ip' must be an IPv4 or IPv6 address."],
    [{ size: true }, "'size' must be a string or a number."],
    [{ run: {} }, "'run.kind' is required."],
    [{ run: { kind: 'three' } }, "'run.kind' must be one of: one, two."],
    [{ run: { kind: 'one' } }, "'run.id' is required."],
  ];
  for (const [given, message] of cases) t.equal(refusal({ name: 'Acme', ...given }).message, message);
  t.equal(refusal(undefined).message, 'The body is required.');
  t.equal(refusal([]).message, 'The body must be an object.');
  t.match(refusal({ name: 'Acme', smtp: { ...smtp, tls: true } }), {
    code: 'unknown_parameter',
    details: { param: 'smtp.tls' },
  });
});

t.test('says on what condition a missing parameter is required', async (t) => {
  const either = z
    .strictObject({ email: z.string().optional(), identifier: z.string().optional() })
    .refine(({ email, identifier }) => email ?? identifier, {
      path: ['email'],
      message: 'Send an email or identifier',
    });
  const { error } = either.safeParse({});
  const { code, message } = validationProblem(error as z.ZodError, 'body', {});
  t.same([code, message], ['missing_parameter', "'email' is required: send an email or identifier."]);
});

t.test('says of a parameter of the query that it is given more than once', async (t) => {
  const query = z.strictObject({
    name: z.string().optional(),
    weekday: z.coerce.number().optional(),
    ids: z.string().array().max(1).optional(),
  });
  for (const [given, message] of [
    [{ name: ['a', 'b'] }, "'name' is given 2 times. Give it once."],
    [{ weekday: ['1', '2'] }, "'weekday' is given 2 times. Give it once."],
    [{ ids: ['1', '2'] }, "'ids' must have at most 1 item."],
  ] as const) {
    const { error } = query.safeParse(given);
    t.equal(validationProblem(error as z.ZodError, 'querystring', given).message, message);
  }
});
