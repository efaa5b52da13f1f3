create function program.is_counted(commission_status text) returns boolean
language sql immutable parallel safe
return commission_status not in ('voided', 'rejected');
comment on function program.is_counted(text) is
  'Whether a commission of this status is part of what its partner is owed or was paid. The predicate of the index commission_one_a_sale: Postgres puts it in the place of a call, and uses the index.';
