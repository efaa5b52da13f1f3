/** The arguments of lists: pages by cursor, newest first, and what a page has when nothing is said. */
import 'postgraphile';
import 'postgraphile/graphile-build-pg';
import { planOrder } from './orders.ts';
import { default_rows, most_rows } from './pages.ts';

const descriptions: Record<string, string> = {
  first: `How many rows to return, from 1 to ${most_rows}. ${default_rows} when neither this nor 'last' is given.`,
  last: `How many rows to return from the end, from 1 to ${most_rows}.`,
  before: "Only rows before this cursor: 'startCursor' of the next page.",
  after: "Only rows after this cursor: 'endCursor' of the page before.",
  condition: 'Which rows to return: those that meet all of it.',
  orderBy: 'The order of the rows.',
};

export const lists: GraphileConfig.Plugin = {
  name: 'RailListsPlugin',
  version: '1.0.0',
  after: ['PgFirstLastBeforeAfterArgsPlugin', 'PgConnectionArgOrderByDefaultValuePlugin', 'PgConditionArgumentPlugin'],
  schema: {
    hooks: {
      GraphQLObjectType_fields_field_args(args, _build, { scope }) {
        if (!scope.isPgFieldConnection) return args;
        // To skip rows by their number is to read them.
        const { offset: _, ...others } = args;
        return others;
      },
      GraphQLObjectType_fields_field_args_arg(arg, _build, { scope }) {
        const { isPgFieldConnection, argName, pgFieldResource } = scope;
        const description = isPgFieldConnection && descriptions[argName];
        if (!description) return arg;
        if (argName !== 'orderBy' || !pgFieldResource) return { ...arg, description };
        const applyPlan = planOrder(pgFieldResource.codec as never) as never;
        return { ...arg, description, defaultValue: newestFirst(arg.type), applyPlan };
      },
    },
  },
};

interface OrderByList {
  ofType: { ofType: { getValue(name: string): { value: unknown } | undefined } };
}

const newestFirst = (type: unknown): unknown[] => [
  (type as OrderByList).ofType.ofType.getValue('PRIMARY_KEY_DESC')?.value,
];
