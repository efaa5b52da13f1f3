-- Prospects and lists belong to brands, owners are team members, and entries of do not contact say when they were changed.

alter table recruitment.prospect
  add constraint prospect_brand foreign key (organization_id, brand_id) references recruitment.brand (organization_id, id),
  add constraint prospect_assignee foreign key (organization_id, assignee_member_id)
    references recruitment.team_member (organization_id, id) on delete set null (assignee_member_id);
alter table recruitment.list
  add constraint list_brand foreign key (organization_id, brand_id) references recruitment.brand (organization_id, id);

alter table recruitment.suppression add column updated_at timestamptz(3) not null default now();
