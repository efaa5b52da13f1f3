/** Organizations with rows in every view, and clients that connect as their data teams do. */
import pg from 'pg';
import t from 'tap';
import { createLogin, type LoginTerms, type NewLogin } from '../../src/data/login.ts';
import { type Caller, eventually, type Json, type Rail, sql } from '../harness.ts';
import { resources, World } from '../samples.ts';
import { openShop } from '../shop.ts';

/** An organization with at least one row in each view that is of rows, and one of its programs with money in it. */
export async function fillOrganization(
  rail: Rail,
  receiver_url: string,
): Promise<{ caller: Caller; program_id: string }> {
  const caller = await rail.organization();
  const world = new World(caller, receiver_url, caller, rail);
  for (const plural of ['webhook_endpoints', ...resources]) await world.fixture(plural);
  const shop = await openShop(rail, {}, caller);
  const { program_id } = shop;
  await shop.endpoint(receiver_url);
  await shop.rule();
  const tag = await caller.post('/v1/tags', { program_id, name: 'Creators', color: '#336699' });
  const partner = await shop.partner({ first_name: 'Ada', company_name: 'Analytical', metadata: { note: 'ada' } });
  await caller.patch(`/v1/partners/${partner.id}`, { tag_ids: [tag.id] });
  await caller.request('PUT', `/v1/partners/${partner.id}/payout_method`, {
    method: 'bank_transfer',
    details: { account_holder: 'Ada', iban: 'DE89370400440532013000', bic: 'COBADEFFXXX' },
  });
  await shop.coupon({ partner_id: partner.id });
  const customer = await shop.referred(partner, { name: 'Grace', email: `grace-${program_id}@customer.example.com` });
  const sale = await shop.sale({ customer_id: customer.id });
  await shop.refund(sale, { amount_minor: 2_500 });
  const paid = await shop.sale({ customer_id: customer.id });
  await shop.pay(paid.commissions[0]);
  await shop.refund(paid);
  await rail.query(sql`
    insert into program.processor_object (organization_id, program_id, processor, external_id, object_id, as_of, created_at, updated_at)
    select ${caller.organization_id}, ${program_id}, 'stripe', 'pi_' || n, ${sale.id}, now(), now(), now() from generate_series(1, 3) as n`);
  await rail.query(sql`
    insert into program.processor_total
      (organization_id, program_id, processor, day, kind, currency, theirs, theirs_minor, ours_minor, uncredited_minor, examples, created_at, updated_at)
    select ${caller.organization_id}, ${program_id}, 'stripe', current_date - n, 'charge', 'USD', 1, 100, 90, 10, '{}', now(), now()
    from generate_series(1, 3) as n`);
  await rail.query(sql`select program.number_statements(${caller.organization_id}, ${program_id})`);
  return { caller, program_id };
}

/** Returns the rows that two organizations read, as text, once each has one: some are written by a worker. */
export async function rowsOfBoth<Reader>(
  readers: [own: Reader, other: Reader],
  read: (reader: Reader) => Promise<object[]>,
  what: string,
): Promise<[own: string[], other: string[]]> {
  let rows: string[][] = [];
  await eventually(async () => {
    rows = await Promise.all(readers.map(async (reader) => (await read(reader)).map((row) => JSON.stringify(row))));
    return rows.every(({ length }) => length > 0);
  }, `rows of both in ${what}`);
  return rows as [string[], string[]];
}

/** Makes a login; everything is left at what the command has by itself, but for what is given. */
export const newLogin = (
  rail: Rail,
  terms: Pick<LoginTerms, 'organization_id'> & Partial<LoginTerms>,
): Promise<NewLogin> =>
  createLogin(rail.store, rail.url, {
    ...{ name: 'test', personal_data: false, expires_at: null, statement_timeout_ms: 60_000, connection_limit: 5 },
    ...terms,
  });

export interface DataClient {
  query(text: string): Promise<Json[]>;
  /** The SQLSTATE that a statement fails with; `allowed` where it does not. */
  codeOf(text: string): Promise<string>;
  pid: number;
  end(): Promise<void>;
}

/** Connects by a login's URL, as psql would. */
export async function connectAs({ url }: Pick<NewLogin, 'url'>): Promise<DataClient> {
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => {});
  await client.connect();
  t.teardown(() => client.end().catch(() => {}));
  const query = async (text: string) => (await client.query(text)).rows as Json[];
  const [{ pid }] = (await query('select pg_backend_pid() as pid')) as [{ pid: number }];
  return {
    query,
    pid,
    codeOf: (text) =>
      query(text).then(
        () => 'allowed',
        (error) => error.code as string,
      ),
    end: () => client.end(),
  };
}

/** The views of schema data. */
export async function viewsOf(rail: Rail): Promise<string[]> {
  const views = await rail.query<{ name: string }>(sql`
    select format('data.%I', v.relname) as name from pg_class v
    where v.relnamespace = 'data'::regnamespace and v.relkind = 'v' order by 1`);
  return views.map(({ name }) => name);
}
