import { z } from 'zod';

/** A type of event. The description, the test events and the check at every emit are derived from it. */
export interface EventType<Shape extends z.ZodRawShape = z.ZodRawShape> {
  /** A sentence that says when it is emitted. */
  doc: string;
  data: z.ZodObject<Shape>;
  /** False if partners' postbacks do not receive it; `omit` names the fields that a postback does not see. */
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
