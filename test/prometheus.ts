/** Prometheus' text format (version 0.0.4), read strictly. */

export interface Family {
  name: string;
  type: string;
  help: string;
  samples: { name: string; labels: Record<string, string>; value: number }[];
}

const suffixes: Record<string, string[]> = {
  counter: [''],
  gauge: [''],
  histogram: ['_bucket', '_sum', '_count'],
  summary: ['', '_sum', '_count'],
};

/** @throws Error that names the line which is not as it must be */
export function parseMetrics(text: string): Map<string, Family> {
  if (!text.endsWith('\n')) throw new Error('The last line does not end.');
  const families = new Map<string, Family>();
  let current: Family | undefined;
  for (const line of text.split('\n').filter(Boolean)) {
    const [, keyword, name = '', rest = ''] = /^# (HELP|TYPE) ([a-zA-Z_:][\w:]*) (.+)$/.exec(line) ?? [];
    if (keyword === 'HELP') {
      if (families.has(name)) throw new Error(`${name} comes twice.`);
      current = { name, type: '', help: rest, samples: [] };
      families.set(name, current);
    } else if (keyword === 'TYPE') {
      if (current?.name !== name || current.type !== '') throw new Error(`A TYPE without its HELP: ${line}`);
      if (!suffixes[rest]) throw new Error(`An unknown type: ${line}`);
      current.type = rest;
    } else if (line.startsWith('#')) {
      throw new Error(`Not a comment that we make: ${line}`);
    } else {
      const sample = parseSample(line);
      const names = suffixes[current?.type ?? '']?.map((suffix) => current?.name + suffix);
      if (!names?.includes(sample.name)) throw new Error(`A sample that is not of ${current?.name}: ${line}`);
      current?.samples.push(sample);
    }
  }
  for (const family of families.values()) check(family);
  return families;
}

function parseSample(line: string): Family['samples'][0] {
  const label = '[a-zA-Z_]\\w*="(?:[^"\\\\\\n]|\\\\[\\\\"n])*"';
  const form = new RegExp(
    `^([a-zA-Z_:][\\w:]*)(?:\\{((?:${label},)*${label})\\})? (-?[\\d.]+(?:e[+-]?\\d+)?|\\+Inf|-Inf|NaN|Nan)$`,
  );
  // prom-client writes Nan, which Prometheus reads as well.
  const [, name, labels = '', value] = form.exec(line) ?? [];
  if (!name || !value) throw new Error(`Not a sample: ${line}`);
  const pairs = [...labels.matchAll(new RegExp(label, 'g'))].map(([pair]) => {
    const at = pair.indexOf('=');
    return [pair.slice(0, at), JSON.parse(pair.slice(at + 1))] as const;
  });
  return { name, labels: Object.fromEntries(pairs), value: Number(value.replace('Inf', 'Infinity')) };
}

/** A series comes once; the buckets of a histogram grow, and the last holds all. */
function check({ name, type, samples }: Family): void {
  if (type === '') throw new Error(`${name} has no TYPE.`);
  const series = samples.map((sample) => `${sample.name} ${JSON.stringify(Object.entries(sample.labels).sort())}`);
  if (new Set(series).size !== series.length) throw new Error(`A series of ${name} comes twice.`);
  if (type !== 'histogram') return;
  const buckets = samples.filter((sample) => sample.name === `${name}_bucket`);
  const grouped = Map.groupBy(buckets, ({ labels: { le: _, ...labels } }) => JSON.stringify(labels));
  for (const [labels, group] of grouped) {
    const bounds = group.map(({ labels: { le } }) => Number((le as string).replace('Inf', 'Infinity')));
    const grows = group.every(
      ({ value }, at) =>
        at === 0 || (value >= (group[at - 1]?.value ?? 0) && (bounds[at] ?? 0) > (bounds[at - 1] ?? 0)),
    );
    const count = samples.find((sample) => sample.name === `${name}_count` && JSON.stringify(sample.labels) === labels);
    if (!grows || bounds.at(-1) !== Number.POSITIVE_INFINITY || count?.value !== group.at(-1)?.value)
      throw new Error(`The buckets of ${name} ${labels} are not right.`);
  }
}
