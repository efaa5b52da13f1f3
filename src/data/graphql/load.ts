/** Loads what needs PostGraphile, and only then: it takes a second and a hundred megabytes. */
export function loadEndpoint(): Promise<typeof import('./endpoint.ts')> {
  quiet();
  return import('./endpoint.ts');
}

/** Grafast prints advice for developers unless a setting says that this is no development. It reads that from nowhere else. */
export function quiet(): void {
  process.env.GRAPHILE_ENV ??= 'production';
}
