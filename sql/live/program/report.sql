-- The dimensions and spans of time over which reports are summed.

-- The spans of each dimension, in minutes; they begin at multiples of themselves since 1970. All facts together in quarters of an hour, of
-- which the days of every time zone consist; the rest by days of UTC and by the fourfold of each other, because most keys have few facts a day.
create or replace function program.report_spans() returns table (dimension text, minutes integer, is_finest boolean)
language sql immutable
as $$
  values
    ('', 15, true), ('', 1440, false), ('', 23040, false),
    ('partner_id', 1440, true), ('partner_id', 5760, false), ('partner_id', 23040, false), ('partner_id', 92160, false),
    ('link_id', 1440, true), ('link_id', 5760, false), ('link_id', 23040, false), ('link_id', 92160, false),
    ('coupon_id', 1440, true), ('coupon_id', 23040, false),
    ('country', 1440, true), ('country', 23040, false),
    ('landing_page', 1440, true), ('landing_page', 5760, false), ('landing_page', 23040, false), ('landing_page', 92160, false),
    ('product_id', 1440, true), ('product_id', 23040, false),
    ('customer_id', 1440, true)
$$;

-- The fact with the same dimensions: clicks have no coupons; sales and their money have products and customers.
create or replace function program.report_kind(noun text) returns text
language sql immutable parallel safe
return case when noun in ('referral', 'lead', 'customer') then 'customer' when noun = 'click' then 'click' else 'sale' end;

-- The dimensions that a fact is counted by, each with its key: '' where it has none. A union, because Postgres prepares the expressions of VALUES
-- anew for each fact.
create or replace function program.report_keys(
  noun text, partner_id text, link_id text, coupon_id text, country text, landing_page text, product_id text, customer_id text
) returns table (dimension text, key text)
language sql immutable
as $$
  select d.dimension, coalesce(d.key, '')
  from (
    select '' as dimension, '' as key
    union all select 'partner_id', partner_id
    union all select 'link_id', link_id
    union all select 'country', country
    union all select 'landing_page', landing_page
    union all select 'coupon_id', coupon_id where program.report_kind(noun) <> 'click'
    union all select 'product_id', product_id where program.report_kind(noun) = 'sale'
    union all select 'customer_id', customer_id where program.report_kind(noun) = 'sale'
  ) as d
$$;

-- The facts that have a dimension.
create or replace function program.report_nouns(dimension text) returns text[]
language sql immutable
as $$
  select array(
    select n.noun
    from unnest(array['click', 'referral', 'lead', 'customer', 'sale', 'refund', 'commission', 'clawback', 'paid']) as n (noun)
    where exists (select from program.report_keys(n.noun, '', '', '', '', '', '', '') k where k.dimension = report_nouns.dimension)
  )
$$;

-- Adds up bigints to a bigint, many times faster per key than sum(), which answers a numeric. What does not fit raises 22003.
create or replace aggregate program.bigint_sum(bigint) (sfunc = int8pl, stype = bigint, combinefunc = int8pl, parallel = safe);
