import { Problem } from '../values/problem.ts';

/** @throws Problem insufficient_scope, `param` = the scope that is missing */
export function requireScope(scopes: string[], scope: string): void {
  if (hasScope(scopes, scope)) return;
  throw new Problem('insufficient_scope', `The API key does not have the scope '${scope}'. Use a key that has it.`, {
    param: scope,
  });
}

export function hasScope(scopes: string[], scope: string): boolean {
  return scopes.includes('*') || scopes.includes(scope) || (scope.endsWith(':read') && scopes.includes('*:read'));
}
