import { oneLine } from './fields.ts';
import { asSeen, mistakable } from './texts/look_alike.ts';

/** What people type or tell apart by sight: no two that are accepted look the same. Those of before are kept as they are. */
export const unmistakable = (least: number, most: number) =>
  oneLine(most)
    .overwrite(asSeen)
    .min(least)
    .max(most)
    .superRefine((text, context) => {
      const message = mistakable(text);
      if (message !== undefined) context.addIssue({ code: 'custom', message });
    });

/** What customers type. */
export const typedCode = unmistakable(1, 64);
