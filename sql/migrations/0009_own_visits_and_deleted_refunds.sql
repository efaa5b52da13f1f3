-- What is known of the partners' own browsers, so that a partner who signs up by them is recognised without the email.
create table program.partner_visit (
  organization_id text collate "C" not null,
  partner_id text collate "C" not null,
  ip_hash text not null,
  user_agent text not null,
  seen_at timestamptz(3) not null,
  foreign key (organization_id, partner_id) references program.partner on delete cascade
);
comment on table program.partner_visit is 'Browsers that were a partner''s own: by them somebody signed up with the partner''s email.';
comment on column program.partner_visit.ip_hash is 'Keyed hash of the address; the address is never stored.';
create unique index partner_visit_once on program.partner_visit (organization_id, partner_id, ip_hash, md5(user_agent));

call core.protect_tenant_table('program.partner_visit');

-- A refund goes with its sale: an import that was rolled back can be told again, refunds included.
alter table program.refund add column deleted_at timestamptz(3);
comment on column program.refund.deleted_at is 'When its sale was deleted: the external id is free again.';
update program.refund r
set deleted_at = s.deleted_at
from program.sale s
where s.organization_id = r.organization_id and s.id = r.sale_id and s.deleted_at is not null;
drop index program.refund_external_id_unique;
create unique index refund_external_id_unique on program.refund (organization_id, program_id, external_refund_id)
  where deleted_at is null;
