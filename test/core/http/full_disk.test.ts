import t from 'tap';
import { type Json, sql, startRail } from '../../harness.ts';

// A disk cannot be filled on every machine: the tables answer as Postgres does when it is full.
const rail = await startRail({ worker: false });
const merchant = await rail.organization();
const program = { name: 'Acme', website_url: 'https://acme.example.com', currency: 'USD' };

async function readiness(): Promise<{ status: number; message: string | undefined }> {
  const response = await fetch(`${rail.address}/readyz`);
  const body = (await response.json()) as Json;
  return { status: response.status, message: body.error?.message };
}

t.test('a process is not ready from the write that found the disk full until one succeeds', async (t) => {
  await rail.query(sql`create schema full_disk`);
  await rail.query(sql`
    create function full_disk.refuse() returns trigger language plpgsql
    as $$ begin raise exception 'could not extend file "base/5/1": No space left on device' using errcode = '53100'; end $$`);
  await rail.query(sql`
    create function full_disk.refuse_table() returns event_trigger language plpgsql
    as $$ begin raise exception 'could not extend file "base/5/1": No space left on device' using errcode = '53100'; end $$`);
  await rail.query(sql`
    create trigger disk_is_full before insert on program.program for each row execute function full_disk.refuse()`);
  await rail.query(sql`
    create event trigger full_disk on ddl_command_start when tag in ('CREATE TABLE AS')
    execute function full_disk.refuse_table()`);
  t.same(await readiness(), { status: 200, message: undefined }, 'nothing was written yet');

  const { status, headers } = await merchant.request('POST', '/v1/programs', program);
  t.equal(status, 503);
  t.ok(headers['retry-after']);
  const full = 'Postgres has no space left on its disk: reads are answered, and writes are not.';
  t.same(await readiness(), { status: 503, message: full });
  t.equal((await merchant.request('GET', '/v1/programs')).status, 200);

  await rail.query(sql`drop event trigger full_disk`);
  await rail.query(sql`drop schema full_disk cascade`);
  t.same(await readiness(), { status: 200, message: undefined });
  t.equal((await merchant.request('POST', '/v1/programs', program)).status, 201);
});
