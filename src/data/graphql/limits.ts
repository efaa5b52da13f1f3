/** What one request may ask for. All of it is counted before anything is read. */

/** Operations in a batch. */
export const most_operations = 10;
/** Words, names and marks of a query. */
export const most_tokens = 5_000;
/** Fields and fragment spreads of an operation, once all fragments are written out: planning them takes time, whatever they read. */
export const most_fields = 1_000;
/** How deep fields stand in each other, lists and their `nodes` included. */
export const most_depth = 10;
/** What the operations of a request cost together. */
export const most_cost = 50_000;

/** How long a statement may take. */
export const statement_ms = 3_000;
/** Of the time in which a request has to be answered at all, what GraphQL has: the rest is for saying so. */
export const share_of_deadline = 0.8;
/** When the thread's answer is no longer waited for: it may be busy with other requests. */
export const share_of_lateness = 0.9;

/**
 * A value costs 1, so that a page costs rows × fields. An object costs 10 more, because it is joined or looked up for each row around it.
 * `totalCount` and `aggregates` read every row that matches, whatever the page. What the schema says of itself reads nothing: a tenth of a value.
 * A field with objects costs more once, however many rows there are: to plan a list takes some milliseconds of CPU, and an object half of that. What is
 * accepted at most is planned within 200 ms.
 */
export const costs = {
  value: 1,
  object: 10,
  count: 1_000,
  introspected: 0.1,
  planned_list: 1_000,
  planned_object: 450,
} as const;
/** How many entries lists of the introspection have, as far as it matters: the schema has about as many types, and types as many fields. */
export const introspected_lists: Record<string, number> = {
  types: 100,
  fields: 10,
  enumValues: 5,
  inputFields: 5,
  args: 5,
};
