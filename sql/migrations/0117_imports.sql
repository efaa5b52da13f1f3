-- Imports of prospects from files: how far each is, the rows that were refused, and the file until it is read.

create table recruitment.import (
  organization_id text collate "C" not null references core.organization on delete cascade,
  id text collate "C" not null,
  brand_id text collate "C" not null,
  state text not null constraint import_state_known check (state in ('queued', 'running', 'done', 'failed')),
  format text not null constraint import_format_known check (format in ('csv', 'ndjson')),
  delimiter text,
  mapping jsonb not null,
  dry_run boolean not null,
  update_existing boolean not null,
  total integer not null,
  rows_read integer not null default 0,
  created integer not null default 0,
  updated integer not null default 0,
  unchanged integer not null default 0,
  refused integer not null default 0,
  error text,
  by_user_id text collate "C",
  by_member_id text collate "C",
  interruptions integer not null default 0,
  started_at timestamptz(3),
  finished_at timestamptz(3),
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  primary key (organization_id, id),
  constraint import_csv_has_delimiter check ((format = 'csv') = (delimiter is not null)),
  constraint import_ends_once check ((state in ('queued', 'running')) = (finished_at is null)),
  constraint import_failed_has_error check ((state = 'failed') = (error is not null)),
  constraint import_counts_every_row check (rows_read = created + updated + unchanged + refused)
);
comment on table recruitment.import is 'A file of prospects that is imported, in steps of some rows.';
comment on column recruitment.import.mapping is 'The field that each column of the file is imported as; null: it is left out.';
comment on column recruitment.import.total is 'Rows of the file: counted by its lines until it is read, exact afterwards.';
comment on column recruitment.import.rows_read is 'Rows that are imported or refused: the import goes on behind them.';
comment on column recruitment.import.interruptions is 'How often a worker began without finishing a step since.';
create index import_by_brand on recruitment.import (organization_id, brand_id, id);

create table recruitment.import_chunk (
  organization_id text collate "C" not null references core.organization on delete cascade,
  id text collate "C" not null,
  import_id text collate "C" not null,
  number integer not null,
  content bytea not null,
  primary key (organization_id, id),
  constraint import_chunk_once unique (organization_id, import_id, number),
  constraint import_chunk_import foreign key (organization_id, import_id)
    references recruitment.import (organization_id, id) on delete cascade
);
comment on table recruitment.import_chunk is 'The file of an import, in parts. They are deleted when the import ends.';
comment on column recruitment.import_chunk.content is 'Sealed: AES-256-GCM with the key''s id in front.';

create table recruitment.import_error (
  organization_id text collate "C" not null references core.organization on delete cascade,
  id text collate "C" not null,
  import_id text collate "C" not null,
  line integer not null,
  field text,
  reason text not null,
  created_at timestamptz(3) not null default now(),
  primary key (organization_id, id),
  constraint import_error_import foreign key (organization_id, import_id)
    references recruitment.import (organization_id, id) on delete cascade
);
comment on table recruitment.import_error is 'The rows that an import refused. It says where and why, and holds nothing of the row.';
create index import_error_by_import on recruitment.import_error (organization_id, import_id, id);

call core.protect_tenant_table('recruitment.import');
call core.protect_tenant_table('recruitment.import_chunk');
call core.protect_tenant_table('recruitment.import_error');
