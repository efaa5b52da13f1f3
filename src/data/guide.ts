/** The page for data teams, besides the dictionary. A test runs each of the example queries. */
import {
  costs,
  most_cost,
  most_depth,
  most_fields,
  most_operations,
  most_tokens,
  statement_ms,
} from './graphql/limits.ts';

export interface Example {
  title: string;
  sql: string;
}

export const examples: Example[] = [
  {
    title: 'Revenue and commissions of each partner in a month',
    sql: `select p.handle, t.currency, sum(t.revenue_minor) as revenue_minor, sum(t.commissions_minor) as commissions_minor
from (
  select partner_id, currency, amount_minor as revenue_minor, 0 as commissions_minor, occurred_at
  from data.sale
  union all
  select c.partner_id, c.currency, 0, c.counted_minor, coalesce(
    s.occurred_at, -- null: the sale was deleted after its commission was paid, or there is none
    (select min(e.effective_at) from data.commission_entry e where e.commission_id in (c.id, c.clawback_of) and e.kind = 'earned'),
    c.created_at
  )
  from data.commission c
  left join data.sale s on s.id = c.sale_id
  where c.kind <> 'clawback'
) t
join data.partner p on p.id = t.partner_id
where t.occurred_at >= date_trunc('month', now(), 'UTC') and t.occurred_at < date_trunc('month', now(), 'UTC') + interval '1 month'
group by p.id, p.handle, t.currency
order by revenue_minor desc`,
  },
  {
    title: 'What was owed to partners at the end of a month',
    sql: `select program_id, currency, payable_minor, receivable_minor
from data.payable_liability(date_trunc('month', now(), 'UTC'))`,
  },
  {
    title: 'The account of a partner',
    sql: `select posted_at, kind, cause, external_charge_id, opening_minor, amount_minor, closing_minor
from data.partner_ledger
where partner_id = 'part_01kfq0m1cmf7sb4g38p06mzq9d' and currency = 'USD'
order by position`,
  },
  {
    title: 'From click to sale, week by week',
    sql: `select date_trunc('week', day)::date as week, sum(clicks) as clicks, sum(leads) as leads, sum(customers) as customers, sum(sales) as sales
from data.funnel_daily
where day >= now() - interval '8 weeks'
group by week
order by week`,
  },
  {
    title: 'Revenue of cohorts of customers, by the months since they first paid',
    sql: `select program_id, cohort, months_since, customers, net_revenue_minor
from data.cohort_revenue
where currency = 'USD'
order by program_id, cohort, months_since`,
  },
  {
    title: 'Partners with the highest refund rate, by month and currency',
    sql: `select partner_id, month, currency, sales, refunded_sales, refund_rate_bps / 100.0 as refund_rate_percent
from data.refund_rate
where partner_id is not null and sales >= 10
order by refund_rate_bps desc
limit 20`,
  },
  {
    title: 'Charges, refunds and payouts of a month, to be compared with the statements of the processor and the rails',
    sql: `select external_id, object, currency, amount_minor, fee_minor, occurred_at
from data.reconciliation
where occurred_at >= date_trunc('month', now(), 'UTC')
order by occurred_at`,
  },
  {
    title: 'What partners without a verified tax form were paid in a year',
    sql: `select partner_id, currency, paid_minor, tax_form_status
from data.paid_yearly
where year = extract(year from now()) and tax_form_status <> 'verified'
order by paid_minor desc`,
  },
  {
    title: 'How the campaigns of a month did',
    sql: `select c.name, sum(d.sent) as sent, sum(d.bounced) as bounced, sum(d.replies) as replies, sum(d.interested_replies) as interested
from data.outreach_daily d
join data.campaign c on c.id = d.campaign_id
where d.day >= date_trunc('month', now(), 'UTC')
group by c.id, c.name
order by interested desc`,
  },
  {
    title: 'Endpoints with less than 99 % of a day delivered, in the last week',
    sql: `select e.url, h.day, h.deliveries, h.failed, h.delivered_bps / 100.0 as delivered_percent
from data.webhook_health h
join data.webhook_endpoint e on e.id = h.endpoint_id
where h.day >= current_date - 7 and h.delivered_bps < 9900
order by h.day desc`,
  },
];

/** Paragraphs; what stands between backticks is code. */
export const rules = [
  'Schema `data` has a view for each resource, named in the singular (`data.sale`), and views that answer common questions. They show the rows of your organization, in all of its programs. Deleted rows are left out, ids are those of the API, times are `timestamptz`, and days and months are in UTC. Write times with a time zone, as in `2026-10-01T00:00Z`: without one, they are in that of your session.',
  'Amounts are integers in minor units of the currency in the same row: 1999 is 19.99 USD, and 1999 JPY. Never add up rows of different currencies.',
  'A refund changes the amount of the commission itself, so sums of `data.commission` change later. For figures of a month that must not change, use `data.commission_entry`, whose rows never change: `posted_at` is when the transaction that wrote an entry began, `effective_at` when it happened. Read a day or month by `posted_at` some minutes after its end.',
  'There are many clicks, events, deliveries and attempts: filter them by `created_at` or by `id` (attempts: by `at` or `delivery_id`). Ids sort by time. Filter `data.click_daily`, `data.sale_daily`, `data.commission_daily`, `data.funnel_daily`, `data.webhook_health` and `data.outreach_daily` by `day`: they then read only the rows of these days.',
  'Without personal data, email addresses in texts and URLs (such as `name`, `description`, `landing_url` and `void_reason`) are shown as `hidden`, also where they are written as `ada [at] example.com`. Other personal data that you put into them, such as names, is not recognized and stays. Your own ids (such as `external_customer_id`, `external_charge_id` and `product_id`) are shown as they are: do not use email addresses as ids. If you do not set a `handle`, it is the part of the email address before the `@`: set handles that identify nobody.',
  'Later versions add columns to the views; they remove none, and change no type. Name the columns that you read instead of `*`.',
];

export interface Tool {
  name: string;
  text: string;
  code?: string;
}

export const tools: Tool[] = [
  {
    name: 'A login',
    text: 'The operator of the service creates a login for you. It reads the rows of your organization in schema `data` and nothing else. Emails, names and other personal columns are null unless it is created with `--personal-data`. Without `--expires`, it does not expire.',
    code: "npx --no rail data user create --organization org_… --name 'Metabase' --expires 365d",
  },
  {
    name: 'psql',
    text: 'Connect with the URL that was printed, here in `RAIL_DATA_URL`.',
    code: `psql "$RAIL_DATA_URL" -c '\\dv data.*'`,
  },
  {
    name: 'Metabase',
    text: 'Add a database of the type PostgreSQL with host, port, database name, user and password of the URL. Under Schemas choose only `data`. The comments of views and columns become their descriptions.',
  },
  {
    name: 'Grafana',
    text: 'Add a data source of the type PostgreSQL with the same settings. A time series needs a query with a column `time`, such as this one.',
    code: `select occurred_at as time, amount_minor / 100.0 as revenue
from data.sale
where $__timeFilter(occurred_at) and currency = 'USD'
order by occurred_at`,
  },
  {
    name: 'dbt',
    text: 'The operator of the service prints the sources, and your models refer to them. The login cannot write, so the models need a database of their own, for example DuckDB with this Postgres attached for reading, or a warehouse that you fill from the change feed.',
    code: 'mkdir -p models\nnpx --no rail data dictionary --format dbt > models/rail_sources.yml',
  },
  {
    name: 'The change feed',
    text: 'To keep a copy elsewhere, export a resource, then what changed since the position on the last line. All other lines are objects as the API returns them, or `{id, object, deleted: true}`. No change is missed. The operator of the service uses `npx --no rail data export`, with `--personal-data` for partners, customers and other resources with personal data. Applications use `GET /v1/exports/{resource}?since=<position>`, with the scopes `data:read` and `data:personal`. To replicate tables as they are, the operator creates a publication for logical replication with the statement that `select data.publication_statement()` returns.',
    code: `npx --no rail data export commissions > commissions.ndjson
npx --no rail data export commissions --since "$(tail -n 1 commissions.ndjson | grep -o 'pos_[0-9a-z]*')" > changes.ndjson`,
  },
  {
    name: 'GraphQL',
    text: 'Applications read the same views by `POST /graphql`, with an API key that has the scope `data:read` (and `data:personal` for emails, names and other personal columns). `/graphiql` explores it in a browser, `npx --no rail data graphql-schema` prints its schema. A page of a list has 20 rows, or as many as `first` says, up to 100. For the next page, send the `endCursor` of this one as `after`. `condition` filters: add `program_id` to it, because most indexes begin with it. `aggregates` counts and adds up all rows that match, by currency. It is read-only.',
    code: `curl https://rail.example.com/graphql -H "Authorization: Bearer $RAIL_KEY" -H 'Content-Type: application/json' \\
  -d '{"query": "{ sales(first: 5) { nodes { id amount_minor currency partner { handle } } aggregates { currency count amount_minor_sum } } }"}'`,
  },
  {
    name: 'A notebook',
    text: 'In Python, with `pip install pandas sqlalchemy "psycopg[binary]"`:',
    code: `import os, pandas, sqlalchemy
engine = sqlalchemy.create_engine("postgresql+psycopg://" + os.environ["RAIL_DATA_URL"].split("://")[1])
sales = pandas.read_sql("select occurred_at, currency, amount_minor from data.sale", engine)`,
  },
];

/** Not by `toLocaleString`, which loads the locales of ICU into each process: 60 ms. */
const number = (count: number): string => String(count).replaceAll(/\B(?=(\d{3})+$)/g, ',');

/** Paragraphs, as those of the rules. */
export const limits = [
  'Before Postgres orders or joins a view, it reads all rows that the conditions on this view leave, even with `order by … limit`. So filter each view: conditions on `id`, on the ids of other objects and on times (`created_at`, `occurred_at`, `posted_at`, and `day` of the views by day) use an index. GraphQL does not have this limitation: the order of its lists uses an index, too.',
  'A login cannot write. A statement may run for a minute, and a login may have 5 connections, unless it was created with `--statement-timeout` or `--connections`. Each session may use 2 GB of temporary files. A session can change its own `statement_timeout`, but Rail checks every 5 seconds and ends sessions whose statement runs longer than allowed, whose transaction has been open for longer than that (or a minute, if that is more), that use `NOTIFY`, or that hold an advisory lock.',
  'A login can use the functions of Postgres that compute and that describe the schema. Others, such as `pg_sleep`, `pg_notify`, `pg_relation_size` and those of large objects, are refused, and so is a connection to another database of the server. Postgres lets every role change its own password and settings: Rail resets them within a minute, if its database user may. Memory (`work_mem`) cannot be limited for a login.',
  'A login can read what Postgres estimates for all organizations together. `explain` and `pg_class` show roughly how many rows and bytes each table has, and how often a value occurs in columns with ids of Rail, times, booleans, small integers, and values from a fixed list, such as `status`, `currency` and `country`. `explain analyze` also counts the rows of all organizations in a span of time. By comparing such estimates, a login can find ids of programs of other organizations, but not whose they are, and estimate how many sales each has. `explain` shows nothing about the values of other columns, such as names, codes, amounts and your own ids. `pg_roles` shows the names of all logins, which do not tell whose they are. `listen` tells when jobs are enqueued, such as `program/attribute_clicks`, and not for whom. Organizations that must not learn this about each other should use GraphQL, which has no `explain`.',
  `A GraphQL request has at most ${most_operations} operations (as an array), and each of them at most ${most_depth} levels, ${number(most_fields)} fields and ${number(most_tokens)} tokens. It costs at most ${number(most_cost)}, counted before anything is read. A value costs ${costs.value}, an object ${costs.object}, \`totalCount\` and \`aggregates\` ${number(costs.count)}, each times the rows of the pages around it. In addition, each field with a list costs ${number(costs.planned_list)} once, and each one with an object ${costs.planned_object}. The header \`Rail-Query-Cost\` says what a request cost. A statement in Postgres takes at most ${statement_ms / 1_000} seconds. Errors of a query are in \`errors\`, with the status 200 and a code in \`extensions.code\`, such as \`query_too_costly\` or \`statement_timeout\`. Errors of the key, its rate limit and the body are those of the REST API.`,
  'If `DATABASE_READ_URL` names a replica, logins and GraphQL read from it, and what they read may lag by some seconds.',
];
