/** Forms that carry files: they are read once it is known who sends them, because to read the parts of a form takes time. */
import type { FastifyInstance, FastifyRequest } from 'fastify';

/** A browser sends a part for each field. */
const most_parts = 10;

/** Takes a form that carries a file as it came. For the routes that are added to `scope`. */
export const takeFiles = (scope: FastifyInstance): void =>
  void scope.addContentTypeParser(
    'multipart/form-data',
    { parseAs: 'buffer' },
    async (_: FastifyRequest, body: Buffer) => body,
  );

/** Reads the form of a request. Of one with more parts than a form with a file has, nothing is read. */
export async function filesOf({ headers, body }: FastifyRequest): Promise<FormData> {
  if (!Buffer.isBuffer(body)) return new FormData();
  const type = headers['content-type'] ?? '';
  const [, boundary = ''] = /;\s{0,9}boundary="?([^";]{1,200})/i.exec(type) ?? [];
  if (boundary === '' || hasMore(body, `--${boundary}`, most_parts)) return new FormData();
  return new Response(new Uint8Array(body), { headers: { 'Content-Type': type } })
    .formData()
    .catch(() => new FormData());
}

/** Returns whether a text stands in the bytes more often than `most` times, and once at the end. */
function hasMore(bytes: Buffer, text: string, most: number): boolean {
  let at = -1;
  for (let found = 0; found <= most + 1; found++) {
    at = bytes.indexOf(text, at + 1);
    if (at < 0) return false;
  }
  return true;
}
