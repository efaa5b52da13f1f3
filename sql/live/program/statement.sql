-- Numbers the statements of a program's paid payouts, without gaps: by the year in which they were paid, in the order of payment. A payout that
-- has a number keeps it. Of one payout alone, where that is about to be no longer paid.
create or replace function program.number_statements(of_organization text, of_program text, of_payout text default null) returns void
language plpgsql
as $$
begin
  perform pg_advisory_xact_lock(hashtextextended('statements of ' || of_program, 0));
  with unnumbered as (
    select p.id, p.paid_at, extract(year from p.paid_at at time zone 'UTC')::integer as year
    from program.payout p
    where p.organization_id = of_organization and p.program_id = of_program and p.status = 'paid' and p.livemode and p.statement_number is null
      and (of_payout is null or p.id = of_payout)
    order by p.id
    for no key update
  ),
  counted as (
    insert into program.statement_count as c (organization_id, program_id, year, statements)
    select of_organization, of_program, u.year, count(*) from unnumbered u group by u.year
    on conflict (organization_id, program_id, year) do update set statements = c.statements + excluded.statements
    returning c.year, c.statements
  ),
  numbered as (
    select u.id, u.year, c.statements + 1 - row_number() over (partition by u.year order by u.paid_at desc, u.id desc) as number
    from unnumbered u
    join counted c on c.year = u.year
  )
  update program.payout p
  set statement_number = n.year || '-' || lpad(n.number::text, greatest(5, length(n.number::text)), '0')
  from numbered n
  where p.organization_id = of_organization and p.id = n.id;
end
$$;
