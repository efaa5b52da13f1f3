import { z } from 'zod';
import { type ProblemCode, type ProblemType, problems } from './problem.ts';

const codes = Object.keys(problems) as ProblemCode[];
const types = [...new Set(codes.map((code) => problems[code].type))] as ProblemType[];

/** The body of every error. */
export const ErrorBody = z
  .object({
    error: z
      .object({
        type: z.enum(types).describe('The family of the code.'),
        code: z.enum(codes).describe('The error code, to handle in code. New codes may be added.'),
        message: z.string().meta({
          description: 'What is wrong and what to do, for people.',
          examples: [problems[codes[0] as ProblemCode].doc],
        }),
        param: z
          .string()
          .optional()
          .describe('The field, header or scope at fault. Nested fields are separated by dots.'),
      })
      .describe('What went wrong.'),
    existing: z.looseObject({}).optional().describe('The existing object with the same value (409).'),
  })
  .meta({ id: 'Error', description: 'The body of every error.' });
