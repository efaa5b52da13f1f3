-- Forgets the app of who is removed: one who is added again sets one up. The API's role can neither read nor write what an app's codes are made of.
create or replace function core.forget_totp() returns trigger
language plpgsql
as $$
begin
  if new.removed_at is not null then
    new.totp_secret := null;
    new.totp_step := null;
  end if;
  return new;
end
$$;
create or replace trigger forget_totp
  before update of removed_at on core.user_account
  for each row execute function core.forget_totp();
