-- A visitor's clicks that nobody has judged are judged together, in their order: found at once, however many a visitor made before.
create index click_waiting on program.click (organization_id, program_id, visitor_token) where attributed_at is null;
