import { z } from 'zod';

/** The formats of rows besides the JSON of a page. */
export const stream_formats = ['csv', 'ndjson'] as const;
export type StreamFormat = (typeof stream_formats)[number];

export const media_types: Record<StreamFormat, string> = { csv: 'text/csv', ndjson: 'application/x-ndjson' };

const formatField = z
  .enum(['json', ...stream_formats])
  .optional()
  .describe(
    'The format of the response. `csv` and `ndjson` return all objects that match, without pages. The default is what the header `Accept` asks for, otherwise `json`.',
  );

/** The query parameters of every operation that gives its rows in other formats too. */
export const formatFields = {
  format: formatField,
  bom: z
    .enum(['true', 'false'])
    .optional()
    .describe(
      '`true`: CSV begins with a byte order mark, by which Excel reads letters such as `ü`. Other formats have none. The default is `false`.',
    ),
};

const json_ranges = ['application/json', 'application/*', '*/*'];

/**
 * The format that a request asks for: by its parameter, or else by the media type that its `Accept` prefers.
 * @param types the media types of what can be had besides JSON, by format
 */
export function formatOf(
  asked: unknown,
  accept: string | undefined,
  types: Record<string, string> = media_types,
): string {
  if (asked !== undefined) return asked as string;
  const format_of_type = new Map(Object.entries(types).map(([format, type]) => [type, format]));
  for (const range of json_ranges) format_of_type.set(range, 'json');
  const [preferred] = (accept ?? '')
    .split(',')
    .map((range) => weighed(range, format_of_type))
    .filter(({ format, weight }) => format !== undefined && weight > 0)
    .sort((one, other) => other.weight - one.weight);
  return preferred?.format ?? 'json';
}

/** `text/csv;q=0.9` */
function weighed(range: string, format_of_type: Map<string, string>): { format: string | undefined; weight: number } {
  const [type = '', ...parameters] = range.split(';').map((part) => part.trim().toLowerCase());
  const weight = parameters.find((parameter) => parameter.startsWith('q='))?.slice(2);
  return { format: format_of_type.get(type), weight: weight === undefined ? 1 : Number(weight) || 0 };
}
