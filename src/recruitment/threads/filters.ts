import sql from 'sql-template-tag';
import { z } from 'zod';
import type { Filter } from '../../core/resource/list_query.ts';

/** What lists of messages and threads are filtered by besides equality. */
export const filters: Record<string, Filter> = {
  needs_review: {
    schema: z.enum(['true', 'false']).optional().describe('Returns only objects with this `needs_review`.'),
    where: (value: string) => sql`t.needs_review = ${value === 'true'}`,
  },
};
