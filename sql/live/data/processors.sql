-- Views of billing processors, of what they sent, and of sales that partners miss.

create or replace view data.processor with (security_barrier = true) as
select
  p.id,
  p.program_id,
  p.processor,
  p.mode,
  p.status,
  case when (select data.sees_personal()) then p.disconnected_reason else data.without_emails(p.disconnected_reason) end as disconnected_reason,
  case when (select data.sees_personal()) then p.account else data.without_emails(p.account) end as account,
  p.reconciled_to,
  p.created_at,
  p.updated_at
from program.processor p
where p.organization_id = (select data.organization_id())
  and p.deleted_at is null;
comment on view data.processor is 'The billing processors that programs are connected to: one row for each, without credentials.';
comment on column data.processor.id is 'The connection (prc_). Each time that the credentials are set makes a new one.';
comment on column data.processor.program_id is 'The program (prg_).';
comment on column data.processor.processor is 'stripe, paddle or chargebee.';
comment on column data.processor.mode is 'test or live.';
comment on column data.processor.status is 'connected or disconnected.';
comment on column data.processor.disconnected_reason is 'Why it is disconnected. Null: it is connected. Emails in it are "hidden" unless the login was made with --personal-data.';
comment on column data.processor.account is 'The account at the processor. Emails in it are "hidden" unless the login was made with --personal-data.';
comment on column data.processor.reconciled_to is 'Events up to then were compared with those that the processor says it sent.';
comment on column data.processor.created_at is 'When it was recorded.';
comment on column data.processor.updated_at is 'When it last changed.';

create or replace view data.processor_event with (security_barrier = true) as
select
  e.id,
  e.program_id,
  e.processor,
  e.external_event_id,
  e.type,
  e.external_object_id,
  e.external_customer_id,
  e.livemode,
  e.status,
  case when (select data.sees_personal()) then e.waiting_for else data.without_emails(e.waiting_for) end as waiting_for,
  case when (select data.sees_personal()) then e.reason else data.without_emails(e.reason) end as reason,
  case when (select data.sees_personal()) then e.message else data.without_emails(e.message) end as message,
  e.result_id,
  e.occurred_at,
  e.worked_at,
  e.created_at,
  e.updated_at
from program.processor_event e
where e.organization_id = (select data.organization_id());
comment on view data.processor_event is 'Events that a billing processor sent within the last 90 days, and what became of each. Their bodies are not shown.';
comment on column data.processor_event.id is 'The event in the inbox (pev_).';
comment on column data.processor_event.program_id is 'The program (prg_).';
comment on column data.processor_event.processor is 'stripe, paddle or chargebee.';
comment on column data.processor_event.external_event_id is 'The processor''s id of the event.';
comment on column data.processor_event.type is 'The processor''s type of the event, such as invoice.paid.';
comment on column data.processor_event.external_object_id is 'The processor''s id of what it is about. Null: it has none.';
comment on column data.processor_event.external_customer_id is 'The processor''s id of the customer. Null: it names none.';
comment on column data.processor_event.livemode is 'False: of the test mode of the processor.';
comment on column data.processor_event.status is 'pending, waiting, done, ignored, failed or unresolved.';
comment on column data.processor_event.waiting_for is 'The processor''s id that must be known first. Null: none. Emails in it are "hidden" unless the login was made with --personal-data.';
comment on column data.processor_event.reason is 'Why it had no effect, such as unattributed: nobody is credited with the charge. Null: it had its effect. Emails in it are "hidden" unless the login was made with --personal-data.';
comment on column data.processor_event.message is 'The reason in words. Null: none. Emails in it are "hidden" unless the login was made with --personal-data.';
comment on column data.processor_event.result_id is 'The sale, refund, dispute, customer or coupon that it created or changed. Null: none.';
comment on column data.processor_event.occurred_at is 'When it happened, by the processor.';
comment on column data.processor_event.worked_at is 'When it was last worked on. Null: it is pending.';
comment on column data.processor_event.created_at is 'When it was recorded.';
comment on column data.processor_event.updated_at is 'When it last changed.';

create or replace view data.processor_object with (security_barrier = true) as
select
  o.program_id,
  o.processor,
  o.external_id,
  o.object_id,
  case when (select data.sees_personal()) then o.state else data.without_emails(o.state) end as state,
  o.as_of,
  o.created_at,
  o.updated_at
from program.processor_object o
where o.organization_id = (select data.organization_id());
comment on view data.processor_object is 'The ids of billing processors that are known, such as that of a payment, and what each is here.';
comment on column data.processor_object.program_id is 'The program (prg_).';
comment on column data.processor_object.processor is 'stripe, paddle or chargebee.';
comment on column data.processor_object.external_id is 'The processor''s id: of an invoice, a payment, a refund, a subscription or another object.';
comment on column data.processor_object.object_id is 'The sale, refund, dispute or customer. Null: nothing, such as a charge that nobody is credited with.';
comment on column data.processor_object.state is 'The last state of it at the processor that was taken over. Null: it has none. Emails in it are "hidden" unless the login was made with --personal-data.';
comment on column data.processor_object.as_of is 'The time of the event that told the state.';
comment on column data.processor_object.created_at is 'When it was recorded.';
comment on column data.processor_object.updated_at is 'When it last changed.';

create or replace view data.processor_total with (security_barrier = true) as
select
  t.program_id,
  t.processor,
  t.day,
  t.kind,
  t.currency,
  t.theirs,
  t.theirs_minor,
  t.ours_minor,
  t.uncredited_minor,
  t.theirs_minor - t.ours_minor - t.uncredited_minor as difference_minor,
  case when (select data.sees_personal()) then t.examples else array(select data.without_emails(e) from unnest(t.examples) as e) end as examples,
  t.created_at,
  t.updated_at
from program.processor_total t
where t.organization_id = (select data.organization_id());
comment on view data.processor_total is 'What a billing processor says that it moved on a day, beside what is recorded of the same charges, refunds and disputes: compared each night, by currency.';
comment on column data.processor_total.program_id is 'The program (prg_).';
comment on column data.processor_total.processor is 'stripe, paddle or chargebee.';
comment on column data.processor_total.day is 'The day (UTC).';
comment on column data.processor_total.kind is 'charge, refund or dispute.';
comment on column data.processor_total.currency is 'ISO 4217 code of the currency of all amounts of this row.';
comment on column data.processor_total.theirs is 'How many the processor has.';
comment on column data.processor_total.theirs_minor is 'What they come to at the processor, in minor units.';
comment on column data.processor_total.ours_minor is 'What is recorded of the same ones, in minor units.';
comment on column data.processor_total.uncredited_minor is 'What is known and recorded nowhere, because nobody is credited with the charge or its sale was deleted, in minor units.';
comment on column data.processor_total.difference_minor is 'What is left, in minor units. 0: all is accounted for.';
comment on column data.processor_total.examples is 'Ids at the processor of up to ten that differ. Emails in them are "hidden" unless the login was made with --personal-data.';
comment on column data.processor_total.created_at is 'When they were first compared.';
comment on column data.processor_total.updated_at is 'When they were last compared.';

create or replace view data.sale_claim with (security_barrier = true) as
select
  c.id,
  c.program_id,
  c.partner_id,
  c.external_charge_id,
  case when (select data.sees_personal()) then c.email end as email,
  case when (select data.sees_personal()) then c.coupon_code else data.without_emails(c.coupon_code) end as coupon_code,
  c.occurred_at,
  case when (select data.sees_personal()) then c.note end as note,
  c.finding,
  c.sale_id,
  c.processor_event_id,
  c.status,
  case when (select data.sees_personal()) then c.resolution_note end as resolution_note,
  c.resolved_at,
  c.created_at,
  c.updated_at
from program.sale_claim c
where c.organization_id = (select data.organization_id());
comment on view data.sale_claim is 'Sales that partners miss: what was found of each at once, and the decision.';
comment on column data.sale_claim.id is 'The claim (clm_).';
comment on column data.sale_claim.program_id is 'The program (prg_).';
comment on column data.sale_claim.partner_id is 'The partner who claims the sale (part_).';
comment on column data.sale_claim.external_charge_id is 'The processor''s id of the charge, or the order number. Null: not given.';
comment on column data.sale_claim.email is 'The customer''s email address. Personal: null unless the login was made with --personal-data.';
comment on column data.sale_claim.coupon_code is 'The code of the coupon that was used. Null: not given. Emails in it are "hidden" unless the login was made with --personal-data.';
comment on column data.sale_claim.occurred_at is 'About when the customer paid. Null: not given.';
comment on column data.sale_claim.note is 'What the partner says. Personal: null unless the login was made with --personal-data.';
comment on column data.sale_claim.finding is 'credited, found_with_click, found_without_click, received or not_found.';
comment on column data.sale_claim.sale_id is 'The sale (sale_). Null: none was found.';
comment on column data.sale_claim.processor_event_id is 'The event of the billing processor that reports the charge (pev_). Null: none.';
comment on column data.sale_claim.status is 'open, accepted or rejected.';
comment on column data.sale_claim.resolution_note is 'The note of the decision. Personal: null unless the login was made with --personal-data.';
comment on column data.sale_claim.resolved_at is 'When it was decided. Null: it is open.';
comment on column data.sale_claim.created_at is 'When it was recorded.';
comment on column data.sale_claim.updated_at is 'When it last changed.';
