-- The inboxes that a worker reads: its share of those that are connected. It takes what nobody reads, or a worker that is gone, and gives up
-- what is over its share, for workers that came later. `login` changes when the connection must be opened anew. What it still watches, and no longer reads, is not taken again
-- before that connection has ended.
create or replace function recruitment.claim_inboxes(reader text, watched text[]) returns table (organization_id text, inbox_id text, login text)
language plpgsql volatile
as $$
declare
  connected integer;
  share integer;
  held integer;
begin
  if not exists (select from recruitment.inbox i where i.status = 'connected' and i.deleted_at is null)
    and not exists (select from recruitment.inbox_reader r where r.worker_id = reader) then
    return;
  end if;

  insert into recruitment.inbox_reader (organization_id, inbox_id)
  select i.organization_id, i.id
  from recruitment.inbox i
  where i.status = 'connected' and i.deleted_at is null
    and not exists (select from recruitment.inbox_reader r where r.organization_id = i.organization_id and r.inbox_id = i.id)
  on conflict do nothing;

  select count(*) from recruitment.inbox i where i.status = 'connected' and i.deleted_at is null into connected;
  select ceil(connected::numeric / greatest(count(*), 1)) from core.worker w into share;

  update recruitment.inbox_reader r
  set worker_id = null
  from recruitment.inbox i
  where r.worker_id = reader and i.organization_id = r.organization_id and i.id = r.inbox_id
    and (i.status <> 'connected' or i.deleted_at is not null);

  update recruitment.inbox_reader r
  set worker_id = null
  from (
    select s.organization_id, s.inbox_id
    from recruitment.inbox_reader s
    where s.worker_id = reader
    order by s.organization_id, s.inbox_id
    offset share
  ) as surplus
  where r.organization_id = surplus.organization_id and r.inbox_id = surplus.inbox_id;

  select count(*) from recruitment.inbox_reader r where r.worker_id = reader into held;
  if held < share then
    update recruitment.inbox_reader r
    set worker_id = reader
    from (
      select f.organization_id, f.inbox_id
      from recruitment.inbox_reader f
      join recruitment.inbox i on i.organization_id = f.organization_id and i.id = f.inbox_id
      where i.status = 'connected' and i.deleted_at is null and f.next_try_at <= now()
        and f.inbox_id <> all (watched)
        and (f.worker_id is null or not exists (select from core.worker w where w.id = f.worker_id))
      order by f.next_try_at
      limit share - held
      for update of f skip locked
    ) as free
    where r.organization_id = free.organization_id and r.inbox_id = free.inbox_id;
  end if;

  return query
  select r.organization_id, r.inbox_id,
    md5(concat_ws(' ', i.email, i.imap, i.oauth, case when i.oauth is null then encode(i.secrets, 'hex') end))
  from recruitment.inbox_reader r
  join recruitment.inbox i on i.organization_id = r.organization_id and i.id = r.inbox_id
  where r.worker_id = reader and i.status = 'connected' and i.deleted_at is null;
end
$$;
