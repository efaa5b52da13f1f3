-- Each person of an organization is a member of its team, however they were added. Who does its finance recruits nobody, and reads.
create or replace function recruitment.add_team_member() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  insert into recruitment.team_member (organization_id, id, user_id, name, email, role, created_at, updated_at)
  values (
    new.organization_id, 'tm_' || substr(new.id, 5), new.id, new.name, new.email,
    case new.role when 'finance' then 'viewer' else new.role end, new.created_at, new.created_at
  )
  on conflict do nothing;
  return null;
end
$$;
revoke execute on function recruitment.add_team_member() from public;
create or replace trigger add_team_member
  after insert on core.user_account
  for each row execute function recruitment.add_team_member();

-- Who is an owner of the organization is one of the team, and who was one is an admin.
create or replace function recruitment.follow_role() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  update recruitment.team_member m
  set role = case when new.role = 'owner' then 'owner' else 'admin' end, updated_at = new.updated_at
  where m.organization_id = new.organization_id
    and m.user_id = new.id
    and (m.role = 'owner') <> (new.role = 'owner');
  return null;
end
$$;
revoke execute on function recruitment.follow_role() from public;
create or replace trigger follow_role
  after update of role on core.user_account
  for each row execute function recruitment.follow_role();

-- The member with this email address in the organization of the request, who is added as a user where there is none. The caller holds a lock
-- that keeps others from adding one meanwhile: the API's role cannot add users itself.
create or replace function recruitment.member_with_email(address text) returns text
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  organization constant text := current_setting('rail.organization_id');
begin
  if not exists (select from core.user_account u where u.organization_id = organization and lower(u.email) = lower(address)) then
    insert into core.user_account (organization_id, id, email, role)
    values (organization, core.new_id('usr'), address, 'member');
  else
    update core.user_account u
    set removed_at = null, updated_at = now()
    where u.organization_id = organization and lower(u.email) = lower(address) and u.removed_at is not null;
  end if;
  return (
    select m.id
    from recruitment.team_member m
    where m.organization_id = organization and lower(m.email) = lower(address)
    order by m.id
    limit 1
  );
end
$$;
revoke execute on function recruitment.member_with_email(text) from public;
grant execute on function recruitment.member_with_email(text) to rail_api;
