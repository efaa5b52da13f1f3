import { z } from 'zod';

/** What is known of a type of event. The description, the test events and the check at every emit are readings of it. */
export interface EventType<Shape extends z.ZodRawShape = z.ZodRawShape> {
  /** When it is emitted, in a sentence. */
  doc: string;
  data: z.ZodObject<Shape>;
  /** Whether a partner's postback receives it; `omit` names the fields that a postback does not see. */
  postback: false | { omit: string[] };
  /**
   * The fields of `data` that can identify a person: endpoints without personal data receive null there, and they are removed when that
   * person is erased.
   */
  personal: string[];
  /** `data` as a test event carries it. */
  example: object;
}

export type Catalogue = Record<string, EventType>;

export const eventType = <Shape extends z.ZodRawShape>(
  doc: string,
  data: Shape,
  example: z.infer<z.ZodObject<Shape>>,
  { postback = false, personal = [] }: Partial<Pick<EventType, 'postback' | 'personal'>> = {},
): EventType<Shape> => ({ doc, data: z.strictObject(data), postback, personal, example });
