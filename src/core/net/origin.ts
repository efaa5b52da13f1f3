/**
 * The `origin` to pass to `agent.request({ origin, path, … })` so that this key (an endpoint's id) has its own connection. Endpoints of
 * many merchants share hosts such as hooks.zapier.com: on one connection they would wait for each other's requests, hung ones included.
 */
export function connectionOrigin(url: URL, connectionKey: string): URL {
  return new URL(`/#${encodeURIComponent(connectionKey)}`, url.origin);
}
