import { z } from 'zod';

/** What rows can be had as, besides the JSON of a page. */
export const stream_formats = ['csv', 'ndjson'] as const;
export type StreamFormat = (typeof stream_formats)[number];
export type Format = 'json' | StreamFormat;

export const media_types: Record<StreamFormat, string> = { csv: 'text/csv', ndjson: 'application/x-ndjson' };

/** The query parameter of every operation that gives its rows in other formats too. */
export const formatField = z
  .enum(['json', ...stream_formats])
  .optional()
  .describe(
    'The format of the response. `csv` and `ndjson` return all objects that match, without pages. The default is what the header `Accept` asks for, otherwise `json`.',
  );

const format_of_type: Record<string, Format> = {
  'application/json': 'json',
  'application/*': 'json',
  '*/*': 'json',
  [media_types.csv]: 'csv',
  [media_types.ndjson]: 'ndjson',
};

/** The format that a request asks for: by its parameter, or else by the media type that its `Accept` prefers. */
export function formatOf(asked: unknown, accept: string | undefined): Format {
  if (asked !== undefined) return asked as Format;
  const [preferred] = (accept ?? '')
    .split(',')
    .map(weighed)
    .filter(({ format, weight }) => format !== undefined && weight > 0)
    .sort((one, other) => other.weight - one.weight);
  return preferred?.format ?? 'json';
}

/** `text/csv;q=0.9` */
function weighed(range: string): { format: Format | undefined; weight: number } {
  const [type = '', ...parameters] = range.split(';').map((part) => part.trim().toLowerCase());
  const weight = parameters.find((parameter) => parameter.startsWith('q='))?.slice(2);
  return { format: format_of_type[type], weight: weight === undefined ? 1 : Number(weight) || 0 };
}
