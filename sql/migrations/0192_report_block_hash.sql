-- What a block is known by to those who keep its values: see program.packed_hash.
alter table program.report_block add column hash bytea;
comment on column program.report_block.hash is 'SHA-256 of the width, the keys and the values: two blocks with the same hash are the same.';

update program.report_block b
set hash = (
  select sha256(
    int2send(b.width) || string_agg(int4send(coalesce(octet_length(c.bytes), -1)) || coalesce(c.bytes, ''::bytea), ''::bytea order by c.nth)
  )
  from unnest(
    array[
      b.keys, b.clicks, b.referrals, b.leads, b.customers, b.sales, b.revenue_minor, b.refunds_minor, b.commissions_minor, b.clawbacks_minor,
      b.paid_minor
    ]
  ) with ordinality as c (bytes, nth)
);

alter table program.report_block alter column hash set not null;
