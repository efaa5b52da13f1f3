-- Runs outside a transaction: clicks are recorded while the index is built.
-- Erasing and exporting a customer finds the clicks of the visitor that earned no credit, which no referral leads to. A click enters this index
-- only when it was attributed to nobody.

create index concurrently if not exists click_without_credit on program.click (organization_id, program_id, visitor_token)
  where referral_id is null and attributed_at is not null;
