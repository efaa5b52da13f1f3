-- Runs outside a transaction. A commission that is put into a payout is written into every index that holds it, which is most of what a batch
-- costs: fewer of them hold it now. They are built before those of before are dropped.

create index concurrently if not exists commission_of_program on program.commission (organization_id, program_id, id)
  include (created_at, kind, status) where deleted_at is null;

-- What is due is in the program's own index, which carries the status along: only few others are passed over while it waits for its payout.
create index concurrently if not exists commission_not_due on program.commission (organization_id, program_id, status, id)
  where deleted_at is null and status <> 'due';

create index concurrently if not exists commission_of_sale on program.commission (organization_id, sale_id) where sale_id is not null;

create index concurrently if not exists commission_of_customer on program.commission (organization_id, customer_id, id)
  where customer_id is not null;

drop index concurrently if exists program.commission_by_program;

drop index concurrently if exists program.commission_by_status;

drop index concurrently if exists program.commission_by_sale;

drop index concurrently if exists program.commission_by_customer;

-- By customer and rule: a customer has few commissions.
drop index concurrently if exists program.commission_by_rule;
