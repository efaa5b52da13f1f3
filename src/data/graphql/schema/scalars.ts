/** Numbers and times in the shape that the REST API gives them. */
import { GraphQLError, Kind, type ValueNode } from 'graphql';

const safeInteger = (value: unknown, node?: ValueNode): number => {
  const number = typeof value === 'string' ? Number(value) : value;
  if (typeof number !== 'number' || !Number.isSafeInteger(number))
    throw new GraphQLError('A BigInt must be an integer from -9007199254740991 to 9007199254740991.', { nodes: node });
  return number;
};

const big_int = {
  description: 'An integer of up to 53 bits, as a JSON number: amounts in minor units, counts.',
  serialize: (value: unknown) => safeInteger(value),
  parseValue: (value: unknown) => String(safeInteger(typeof value === 'string' ? Number.NaN : value)),
  parseLiteral: (node: ValueNode) =>
    String(safeInteger(node.kind === Kind.INT ? Number(node.value) : Number.NaN, node)),
};

/** A day, in UTC, or a time with its zone: without one it would be a time of this machine's. */
const iso_8601 = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d))?$/i;

/** Returns whether there is such a day: JavaScript takes the 30th of February for the 2nd of March, and years of six digits. */
function isDay(text: string): boolean {
  if (text.length !== 10) return false;
  const date = new Date(`${text}T00:00:00Z`);
  return !Number.isNaN(date.getTime()) && date.toISOString().startsWith(`${text}T`);
}

const timestamp = (value: unknown, node?: ValueNode): string => {
  const text = String(value);
  const date = new Date(text);
  if (!iso_8601.test(text) || !isDay(text.slice(0, 10)) || Number.isNaN(date.getTime()))
    throw new GraphQLError(
      'A Datetime must be a day, or a time in ISO 8601 with a time zone, such as 2026-11-21T09:30:00.000Z.',
      { nodes: node },
    );
  return date.toISOString();
};

/** Postgres would also take `01.02.2026`, in the order of its settings, and words such as `yesterday`. */
const day = (value: unknown, node?: ValueNode): string => {
  const text = String(value);
  if (!isDay(text)) throw new GraphQLError('A Date must be a day as YYYY-MM-DD, such as 2026-11-21.', { nodes: node });
  return text;
};

const datetime = {
  description:
    'A time in ISO 8601: 2026-11-21T09:30:00.000Z. Answers have UTC and milliseconds. Conditions take any offset, or a day, which is its beginning in UTC.',
  serialize: (value: unknown) => new Date(String(value)).toISOString(),
  parseValue: (value: unknown) => timestamp(value),
  parseLiteral: (node: ValueNode) => timestamp(node.kind === Kind.STRING ? node.value : '', node),
};

const date = {
  description: 'A day as YYYY-MM-DD: 2026-11-21.',
  parseValue: (value: unknown) => day(value),
  parseLiteral: (node: ValueNode) => day(node.kind === Kind.STRING ? node.value : '', node),
};

const shapes: Record<string, object> = { BigInt: big_int, Date: date, Datetime: datetime };

export const scalars: GraphileConfig.Plugin = {
  name: 'RailScalarsPlugin',
  version: '1.0.0',
  schema: {
    hooks: { GraphQLScalarType: (config) => ({ ...config, ...shapes[config.name] }) },
  },
};
