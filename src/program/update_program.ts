import { z } from 'zod';
import { idParams, type Operation, operation } from '../core/resource/operation.ts';
import { programs, settings } from './programs/program.ts';

export const updateProgramOperations: Operation[] = [
  operation({
    name: 'programs.update',
    method: 'PATCH',
    path: '/v1/programs/{id}',
    scope: 'programs:write',
    summary: "Updates a program's settings.",
    doc: 'Only the fields in the request change. Existing commissions keep their amounts and dates: a new holding period applies to later commissions only.',
    params: idParams,
    body: z.strictObject(settings).partial(),
    reply: programs.schema,
    async run({ tx, params, body }) {
      await programs.get(tx, params.id, { lock: true });
      return programs.update(tx, params.id, body);
    },
  }),
];
