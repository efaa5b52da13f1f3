-- Why an inbox sends no more for now: its rest ends exactly when that does, and people are told what they wait for.
alter table recruitment.inbox
  add column rests_for text constraint inbox_rests_for_known check (rests_for in ('cap', 'plan'));
comment on column recruitment.inbox.rests_for is 'What rests_until waits for: its daily limit (cap), or that of the plan. Null: it does not rest.';
comment on column recruitment.inbox.rests_until is 'It may send no more before: a limit of the day was reached. A person''s emails go all the same.';
