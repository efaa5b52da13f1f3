/** The pages of a list before and after the one that is shown, from the cursor that it was asked with. */

interface ListPage {
  data: { id?: unknown }[];
  has_more: boolean;
}

/** Returns the cursors of the pages beside this one, as parameters of its address; undefined where there is none. */
export function cursorsBeside(
  { data, has_more }: ListPage,
  { starting_after, ending_before }: Record<string, unknown>,
): { previous: Record<string, string> | undefined; next: Record<string, string> | undefined } {
  const [first, last] = [data[0]?.id, data.at(-1)?.id];
  const is_later = starting_after !== undefined || (ending_before !== undefined && has_more);
  const goes_on = ending_before !== undefined || has_more;
  return {
    previous: is_later && typeof first === 'string' ? { ending_before: first } : undefined,
    next: goes_on && typeof last === 'string' ? { starting_after: last } : undefined,
  };
}
