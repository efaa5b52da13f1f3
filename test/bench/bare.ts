import Fastify from 'fastify';
import pg from 'pg';

/**
 * The baseline of requests: Fastify routes with one prepared insert, or select, on a pool of the same size, and nothing else. Reads DATABASE_URL,
 * PORT, HOST and DATABASE_POOL_SIZE.
 */
const { DATABASE_URL, PORT, HOST, DATABASE_POOL_SIZE } = process.env;
const pool = new pg.Pool({ connectionString: DATABASE_URL, max: Number(DATABASE_POOL_SIZE) });
await pool.query(`create table public.bare_sale (
  id bigint generated always as identity primary key,
  charge text not null,
  amount_minor bigint not null,
  currency text not null,
  created_at timestamptz not null default now()
)`);

const app = Fastify();
app.get('/readyz', async () => ({ status: 'ok' }));
app.post('/bare', async (request, reply) => {
  const { external_charge_id, amount_minor, currency } = request.body as Record<string, unknown>;
  const { rows } = await pool.query({
    name: 'insert',
    text: `insert into public.bare_sale (charge, amount_minor, currency) values ($1, $2, $3)
      returning id, charge, amount_minor, currency, created_at`,
    values: [external_charge_id, amount_minor, currency],
  });
  return reply.code(201).send(rows[0]);
});
app.get('/bare/:id', async (request) => {
  const { id } = request.params as { id: string };
  const text = 'select id, charge, amount_minor, currency, created_at from public.bare_sale where id = $1';
  return (await pool.query({ name: 'select', text, values: [id] })).rows[0];
});
await app.listen({ port: Number(PORT), host: HOST as string });

process.once('SIGTERM', async () => {
  await app.close();
  await pool.end();
});
