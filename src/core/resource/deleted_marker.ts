import { z } from 'zod';
import { sampleId } from '../values/fields.ts';

/** The reply to a deletion, and what is inlined for a relation whose object is deleted. */
export const DeletedMarker = z
  .object({
    id: z.string().meta({ description: 'The id of the deleted object.', examples: [sampleId('part')] }),
    object: z.string().meta({ description: 'The type of the deleted object.', examples: ['partner'] }),
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
