-- Which transaction changed a row last, so that a change feed can give what a reader has not seen: what was not visible in the snapshot in
-- which it read before. Snapshots and transactions stand in columns as 64 bits: no freeze and no wraparound changes them.

create function core.note_change() returns trigger
language plpgsql
as $$
begin
  new.changed_in := pg_current_xact_id();
  return new;
end
$$;

-- Called by a migration for each table whose rows the feed gives, before its index is built in a migration of its own. Rows of before have
-- no transaction: only a reader that begins anew gets them.
create procedure core.follow_changes(followed regclass)
language plpgsql
as $$
begin
  execute format('alter table %s add column changed_in xid8', followed);
  execute format('alter table %s alter column changed_in set default pg_current_xact_id()', followed);
  execute format(
    'comment on column %s.changed_in is ''The transaction that wrote the row last. Null: one before the change feed existed.''', followed
  );
  execute format('create trigger change_noted before update on %s for each row execute function core.note_change()', followed);
end
$$;

call core.follow_changes('program.program');
call core.follow_changes('program.partner_group');
call core.follow_changes('program.tag');
call core.follow_changes('program.partner');
call core.follow_changes('program.application');
call core.follow_changes('program.link');
call core.follow_changes('program.coupon');
call core.follow_changes('program.rule');
call core.follow_changes('program.click');
call core.follow_changes('program.referral');
call core.follow_changes('program.customer');
call core.follow_changes('program.sale');
call core.follow_changes('program.refund');
call core.follow_changes('program.commission');
call core.follow_changes('program.risk_flag');

alter table core.deleted_object add column object text, add column changed_in xid8;
alter table core.deleted_object alter column changed_in set default pg_current_xact_id();
comment on column core.deleted_object.object is 'The type of the object.';
comment on column core.deleted_object.changed_in is 'The transaction that deleted it. Null: one before the change feed existed.';
create index deleted_object_by_change on core.deleted_object (organization_id, changed_in) where changed_in is not null;

create table core.export_position (
  organization_id text collate "C" not null references core.organization on delete cascade,
  id text collate "C" not null,
  resource text not null,
  snapshot pg_snapshot not null,
  epoch text not null,
  created_at timestamptz(3) not null default now(),
  primary key (organization_id, id)
);
comment on table core.export_position is
  'Positions that the change feed gave out (pos_). A database that was restored to an earlier time lacks those of later, and refuses them.';
comment on column core.export_position.snapshot is 'What was visible to the export that gave it out: the next one gives what was not.';
comment on column core.export_position.epoch is 'The database that the transactions of the snapshot are of: see core.database_epoch().';
create index export_position_by_age on core.export_position (created_at);
call core.protect_tenant_table('core.export_position');
