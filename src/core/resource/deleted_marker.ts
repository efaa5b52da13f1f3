import { z } from 'zod';

/** The reply to a deletion, and what is inlined for a relation whose object is deleted. */
export const DeletedMarker = z
  .object({
    id: z.string().describe('The id of the deleted object.'),
    object: z.string().describe('The type of the deleted object.'),
    deleted: z.literal(true).describe('Always true.'),
  })
  .meta({
    id: 'DeletedMarker',
    description: 'A deleted object: the reply to its deletion, and the value of an expanded relation to it.',
  });

export const deletedMarker = (object: string, id: string): z.infer<typeof DeletedMarker> => ({
  id,
  object,
  deleted: true,
});
