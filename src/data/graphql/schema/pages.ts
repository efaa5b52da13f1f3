/** Rows of a page at most. */
export const most_rows = 100;
/** Rows of a page where neither `first` nor `last` is given. */
export const default_rows = 20;
