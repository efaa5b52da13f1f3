/** Limits of the whole REST API. */

/** The API's version. Additive changes never change it. */
export const api_version = '2026-11-01';

export const max_body_bytes = 1024 * 1024;
/** The most values of a body: objects, lists, texts, numbers, `true`, `false` and `null`, itself included. */
export const max_body_values = 10_000;
export const max_body_depth = 64;

/** The most requests without a valid key from one address in each second of one process, unless a setting says otherwise. */
export const default_address_rate = 100;
