import { products } from './products.ts';

const apis = await Promise.all(products.map(({ loadApi }) => loadApi()));

/** The operations of all products. */
export const operations = apis.flatMap((api) => api.operations);
/** Every scope that a key may have. */
export const scopes = [
  ...apis.flatMap((api) => api.scopes),
  ...operations.map(({ scope }) => scope),
  ...['keys:write', '*:read', '*'],
];
