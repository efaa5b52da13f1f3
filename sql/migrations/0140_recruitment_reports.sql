-- Reports of recruitment read what happened by its time.
create index activity_by_time on recruitment.activity (organization_id, created_at)
  where kind in ('stage_changed', 'invited', 'signed_up', 'unsubscribed', 'activated');
create index message_by_brand on recruitment.message (organization_id, brand_id, id);
