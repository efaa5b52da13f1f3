import { oneLine } from './fields.ts';
import { asSeen, mistakable } from './texts/look_alike.ts';

/** A code that people type or compare by sight: no two that are accepted look the same. Existing ones are kept as they are. */
export const unmistakable = (least: number, most: number) =>
  oneLine(most)
    .overwrite(asSeen)
    .min(least)
    .max(most)
    .superRefine((text, context) => {
      const message = mistakable(text);
      if (message !== undefined) context.addIssue({ code: 'custom', message });
    });

/** A code that customers type. */
export const typedCode = unmistakable(1, 64);
