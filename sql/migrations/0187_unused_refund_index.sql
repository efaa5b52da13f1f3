-- Runs outside a transaction: refunds are written meanwhile. refund_by_refund_time has taken its place.

drop index concurrently if exists program.refund_by_refunded_at;
