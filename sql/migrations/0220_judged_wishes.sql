-- What the judge of texts barred a person can take back: the message whose text it was, and the reason that held before.
alter table recruitment.suppression add column judged_by text collate "C";
alter table recruitment.suppression add column reason_before text constraint suppression_reason_before_known
  check (reason_before in ('manual', 'angry_reply', 'legal', 'unsubscribed', 'hard_bounce'));
comment on column recruitment.suppression.judged_by is
  'The message whose text was judged to ask for it. Null: a person, a link, one-click, a mailto or a report of a server says so.';
comment on column recruitment.suppression.reason_before is 'The reason that held before `judged_by`, and holds again once that is taken back. Null: none did.';
create index suppression_judged on recruitment.suppression (organization_id, judged_by) where judged_by is not null and lifted_at is null;
alter table recruitment.suppression drop constraint suppression_stays;
alter table recruitment.suppression add constraint suppression_stays
  check (lifted_at is null or reason not in ('unsubscribed', 'complaint') or reason = 'unsubscribed' and judged_by is not null);

alter table recruitment.message add column auto_reply_kind text constraint message_auto_reply_kind_known
  check (auto_reply_kind in ('absence', 'receipt', 'challenge', 'invitation', 'reaction', 'other'));
comment on column recruitment.message.auto_reply_kind is 'What a program answered. Null: no program did.';
