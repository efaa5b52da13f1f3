/** The limits of one request. All of them are checked before anything is read. */

/** Operations in a batch. */
export const most_operations = 10;
/** Words, names and marks of a query. */
export const most_tokens = 5_000;
/** Fields and fragment spreads of an operation, once all fragments are written out: planning them takes time, whatever they read. */
export const most_fields = 1_000;
/** The depth of nested fields, lists and their `nodes` included. */
export const most_depth = 10;
/** The cost of all operations of a request together. */
export const most_cost = 50_000;

/** The time limit of a statement. */
export const statement_ms = 3_000;
/** The share of a request's deadline that GraphQL has: the rest is for answering with an error. */
export const share_of_deadline = 0.8;
/** The share of a request's deadline after which the thread's answer is no longer awaited: it may be busy with other requests. */
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
/** Estimated lengths of the lists of an introspection: the schema has about as many types, and types as many fields. */
export const introspected_lists: Record<string, number> = {
  types: 100,
  fields: 10,
  enumValues: 5,
  inputFields: 5,
  args: 5,
};
