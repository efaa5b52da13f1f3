import { Problem } from '../values/problem.ts';

/** @throws Problem insufficient_scope, `param` = the scope that is missing */
export function requireScope(scopes: string[], scope: string): void {
  if (hasScope(scopes, scope)) return;
  throw new Problem('insufficient_scope', `The API key does not have the scope '${scope}'. Use a key that has it.`, {
    param: scope,
  });
}

/** Every scope that a key may have: those of all operations add themselves, and the API adds the further ones of its products. */
export const known_scopes = new Set(['*', '*:read']);

interface Mode {
  test_keys?: boolean;
  refuse_test_key?: (params: Record<string, string>) => void;
}

/** @throws Problem test_key_not_allowed, or as the operation refuses test keys */
export function requireMode({ mode }: { mode: 'live' | 'test' }, operation: Mode, params: object): void {
  if (mode === 'live' || operation.test_keys !== false) return;
  operation.refuse_test_key?.(params as Record<string, string>);
  throw new Problem('test_key_not_allowed', 'A test key cannot do this. Use a live key.');
}

export function hasScope(scopes: string[], scope: string): boolean {
  return scopes.includes('*') || scopes.includes(scope) || (scope.endsWith(':read') && scopes.includes('*:read'));
}
