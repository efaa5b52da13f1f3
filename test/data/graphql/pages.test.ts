/** Every list is read in whole by small pages, forwards and backwards, in each of its orders: no row is missing, and none comes twice. */
import { buildClientSchema, type GraphQLEnumType, getIntrospectionQuery, getNamedType, isLeafType } from 'graphql';
import t from 'tap';
import { tags } from '../../../src/data/graphql/schema/tags.ts';
import { eventually, type Json, sql, startRail, startReceiver } from '../../harness.ts';
import { openShop } from '../../shop.ts';
import { fillOrganization } from '../tenant.ts';
import { graphOf } from './client.ts';

const rail = await startRail();
const receiver = await startReceiver();
const { caller } = await fillOrganization(rail, receiver.url);
const graph = graphOf(caller);

const day = (ago: number): string => new Date(Date.now() - ago * 86_400_000).toISOString();
await Promise.all([fillSales(), fillClicks(), fillMessages()]);
await eventually(async () => {
  const [{ waiting } = { waiting: 0 }] = await rail.query<{ waiting: number }>(
    sql`select count(*) as waiting from webhooks.delivery where status = 'pending'`,
  );
  return waiting === 0;
}, 'the webhooks');

/** On several days, by partners and by nobody, of products and of none, in two currencies, some of them at the same moment. */
async function fillSales(): Promise<void> {
  const shop = await openShop(rail, {}, caller);
  await shop.rule();
  const partners = [undefined, await shop.partner(), await shop.partner()];
  for (let n = 0; n < 18; n++) {
    const partner = partners[n % 3];
    await shop.sale({
      ...(partner ? { partner_id: partner.id } : {}),
      ...{ customer: { email: `buyer-${n}@customer.example.com` } },
      ...{ occurred_at: day(n % 4), currency: n % 5 === 0 ? 'EUR' : 'USD' },
      ...(n % 2 === 0 ? {} : { product_id: n % 3 === 0 ? 'pro' : 'basic' }),
    });
  }
}

/** By a link and without, from countries and from nowhere known. */
async function fillClicks(): Promise<void> {
  const shop = await openShop(rail, {}, caller);
  const partner = await shop.partner();
  const link = await shop.link(partner);
  for (const country of ['DE', 'FR', undefined])
    for (const value of [link.value, partner.handle, (await shop.partner()).handle])
      await shop.click(partner, { value, ...(country ? { country } : {}) });
}

/** Writes messages of a campaign and of none, on several days. */
async function fillMessages(): Promise<void> {
  for (const at of [1, 2, 3].map(day))
    for (const in_campaign of [true, false])
      await rail.query(sql`
        insert into recruitment.message (
          organization_id, id, brand_id, prospect_id, campaign_id, inbox_id, direction, purpose, state, rfc_message_id, reply_kind, confidence, received_at
        )
        select
          organization_id, ${`fms_${at}${in_campaign}`}, brand_id, prospect_id, case when ${in_campaign} then campaign_id end, inbox_id, 'inbound', 'reply',
          'received', ${`${at}${in_campaign}`}, 'positive', 1, ${at}
        from recruitment.message where organization_id = ${caller.organization_id} and campaign_id is not null limit 1`);
}

const schema = buildClientSchema((await graph.data(getIntrospectionQuery())) as never);
const lists = Object.values(schema.getQueryType()?.getFields() ?? {}).filter(({ args }) =>
  args.some(({ name }) => name === 'first'),
);

interface List {
  name: string;
  order: string;
  orders: string[];
  columns: string;
}

function listOf({ name, args, type }: (typeof lists)[number]): List {
  const order = getNamedType(args.find((arg) => arg.name === 'orderBy')?.type) as GraphQLEnumType;
  const row = schema.getType(getNamedType(type).name.replace(/Connection$/, '')) as never as {
    getFields(): Record<string, { type: never }>;
  };
  const columns = Object.entries(row.getFields()).flatMap(([column, field]) =>
    isLeafType(getNamedType(field.type)) ? [column] : [],
  );
  return { name, order: order.name, orders: order.getValues().map((value) => value.name), columns: columns.join(' ') };
}

interface Asked {
  first?: number;
  last?: number;
  after?: string;
  before?: string;
  order?: string[] | null;
}

/** Returns the rows of a list for these arguments, as texts. */
async function read({ name, order, columns }: List, asked: Asked) {
  const [count, cursor] = asked.last === undefined ? ['first', 'after'] : ['last', 'before'];
  const { list } = await graph.data(
    `query ($${count}: Int, $${cursor}: Cursor, $order: [${order}!]) {
      list: ${name}(${count}: $${count}, ${cursor}: $${cursor}, orderBy: $order) {
        nodes { ${columns} } totalCount pageInfo { hasNextPage hasPreviousPage startCursor endCursor }
      }
    }`,
    asked,
  );
  return { ...list, rows: list.nodes.map((node: unknown) => JSON.stringify(node)) } as {
    rows: string[];
    totalCount: number;
    pageInfo: Json;
  };
}

type Order = Pick<Asked, 'order'>;

async function forwards(list: List, order: Order, size: number): Promise<string[]> {
  const rows: string[] = [];
  for (let after = {}; ; ) {
    const page = await read(list, { first: size, ...order, ...after });
    rows.push(...page.rows);
    if (!page.pageInfo.hasNextPage || rows.length > 100) return rows;
    after = { after: page.pageInfo.endCursor };
  }
}

async function backwards(list: List, order: Order, size: number): Promise<string[]> {
  const rows: string[] = [];
  for (let before = {}; ; ) {
    const page = await read(list, { last: size, ...order, ...before });
    rows.unshift(...page.rows);
    if (!page.pageInfo.hasPreviousPage || rows.length > 100) return rows;
    before = { before: page.pageInfo.startCursor };
  }
}

for (const list of lists.map(listOf)) {
  t.test(`reads ${list.name} by pages in each order`, async (t) => {
    const all = (await read(list, { first: 100 })).rows;
    t.not(all.length, 0);
    t.equal(new Set(all).size, all.length, 'each row differs from all others');
    const size = Math.max(2, Math.ceil(all.length / 3));
    for (const [nth, name] of list.orders.entries()) {
      const order = { order: [name] };
      const whole = await read(list, { first: 100, ...order });
      if (name === 'PRIMARY_KEY_DESC') t.same(whole.rows, all, 'the order where none is given');
      t.equal(whole.totalCount, whole.rows.length);
      t.same(whole.rows.toSorted(), all.toSorted(), `all rows by ${name}`);
      // Each is read one way, and the order where none is given both ways.
      if (nth % 2 === 0 || name === 'PRIMARY_KEY_DESC')
        t.same(await forwards(list, order, size), whole.rows, `forwards by ${name}`);
      if (nth % 2 === 1 || name === 'PRIMARY_KEY_DESC')
        t.same(await backwards(list, order, size), whole.rows, `backwards by ${name}`);
    }
  });
}

t.test('reads pages where no order is asked for', async (t) => {
  const list = listOf(lists.find(({ name }) => name === 'sale_daily') as (typeof lists)[number]);
  const newest = (await read(list, { first: 100, order: ['PRIMARY_KEY_DESC'] })).rows;
  for (const order of [{}, { order: null }, { order: [] }, { order: ['NATURAL'] }]) {
    const { rows } = await read(list, { first: 100, ...order });
    t.same(rows, newest, `newest first ${JSON.stringify(order)}`);
    t.same(await forwards(list, order, 4), rows, `forwards ${JSON.stringify(order)}`);
    t.same(await backwards(list, order, 4), rows, `backwards ${JSON.stringify(order)}`);
  }
});

t.test('has rows that are null in each column of a key that may be', async (t) => {
  for (const { list, nullable = [] } of Object.values(tags)) {
    for (const column of nullable) {
      const { nodes } = (await graph.data(`{ rows: ${list}(first: 100) { nodes { value: ${column} } } }`)).rows;
      const values: unknown[] = nodes.map(({ value }: Json) => value);
      t.ok(values.includes(null) && values.some((value) => value !== null), `${list}.${column}`);
    }
  }
});

t.test('reads pages by several orders at once, and by one that is given as a variable', async (t) => {
  const query = `query ($order: [SaleDailyOrderBy!], $after: Cursor) {
    sale_daily(first: 3, orderBy: $order, after: $after) { nodes { day partner_id product_id currency sales } pageInfo { hasNextPage endCursor } }
  }`;
  for (const order of [['DAY_DESC', 'PRIMARY_KEY_ASC'], ['DAY_ASC'], []]) {
    const whole = (
      await graph.data(
        `{ list: sale_daily(first: 100, orderBy: [${order}]) { nodes { day partner_id product_id currency sales } } }`,
      )
    ).list;
    const rows: Json[] = [];
    for (let after: string | null = null; ; ) {
      const { sale_daily } = await graph.data(query, { order, after });
      rows.push(...sale_daily.nodes);
      if (!sale_daily.pageInfo.hasNextPage) break;
      after = sale_daily.pageInfo.endCursor;
    }
    t.same(rows, whole.nodes);
  }
});
