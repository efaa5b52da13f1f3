-- What a fold adds to the sums of a key: see program.fold_reports().
create type program.report_sum as (
  organization_id text collate "C",
  program_id text collate "C",
  dimension text collate "C",
  starts_in integer,
  key text collate "C",
  currency text collate "C",
  clicks numeric,
  referrals numeric,
  leads numeric,
  customers numeric,
  sales numeric,
  revenue_minor numeric,
  refunds_minor numeric,
  commissions_minor numeric,
  clawbacks_minor numeric,
  paid_minor numeric
);
