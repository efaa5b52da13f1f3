-- Whether a key has a number is known when its sum is made: see program.fold_reports().
alter type program.report_sum add attribute key_id bigint;
