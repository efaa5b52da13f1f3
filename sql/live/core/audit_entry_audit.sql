-- Invariants of the audit log: keys and people are never deleted, and nothing that came by a request is nobody's.
create or replace function core.audit_entries() returns table (invariant text, organization_id text, subject_id text, detail text)
language sql stable
as $$
  select 'an entry of the audit log names a key and a person of its organization', a.organization_id, a.id,
    format('%s by %s, %s', a.operation, a.api_key_id, a.user_id)
  from core.audit_entry a
  left join core.api_key k on k.organization_id = a.organization_id and k.id = a.api_key_id
  left join core.user_account u on u.organization_id = a.organization_id and u.id = a.user_id
  where (a.api_key_id is not null and k.id is null) or (a.user_id is not null and u.id is null)

  union all
  select 'a request in the audit log was made by somebody', a.organization_id, a.id, format('%s by %s', a.operation, a.request_id)
  from core.audit_entry a
  where a.request_id is not null and num_nonnulls(a.api_key_id, a.user_id, a.partner_id) = 0
$$;
comment on function core.audit_entries() is 'The invariants of the audit log; a clean database gives no row.';
