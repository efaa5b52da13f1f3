-- Runs outside a transaction. Short links that were deleted are looked for too: who opens one is sent to its program's website.
create index concurrently if not exists link_by_short_slug on program.link (short_slug, deleted_at) where short_slug is not null;
