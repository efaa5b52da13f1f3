-- No condition and no order asks for the sums, so that statistics of them serve nothing and cost each automatic ANALYZE most of its time.
alter table program.report_total
  alter column clicks set statistics 0, alter column referrals set statistics 0, alter column leads set statistics 0,
  alter column customers set statistics 0, alter column sales set statistics 0, alter column revenue_minor set statistics 0,
  alter column refunds_minor set statistics 0, alter column commissions_minor set statistics 0, alter column clawbacks_minor set statistics 0,
  alter column paid_minor set statistics 0;
