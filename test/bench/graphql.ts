import type { Bench, Sample } from './harness.ts';
import { type Asked, closedLoop, latencies } from './load.ts';
import { openBigProgram } from './merchant.ts';
import { cpuOf, postmasterOf, type Running, usedBy } from './processes.ts';
import { fill } from './rows.ts';

const default_rows = 100_000;
const connections = 4;

/** A list of 20 sales with their customers and partners: by GraphQL, and by REST with the same expansion. */
export const graphql: Bench = {
  name: 'graphql',
  doc: `20 sales with two relations by GraphQL beside the REST list with the same expansion, over ${default_rows.toLocaleString('en')} rows (--size).`,
  defaults: { rounds: 5, seconds: 3 },
  async setup(stack, progress, size = default_rows) {
    const { url, server, client, merchant, organization_id, program_id } = await openBigProgram(stack);
    await fill(client, { organization_id, program_id }, size, (line) => progress(`graphql: ${line}`));
    await client.query('vacuum (analyze)');
    const rest: Asked = {
      method: 'GET',
      path: `/v1/sales?program_id=${program_id}&limit=20&expand[]=customer&expand[]=partner`,
      headers: merchant.headers,
    };
    const graph: Asked = {
      method: 'POST',
      path: '/graphql',
      headers: merchant.headers,
      body: JSON.stringify({ query: list, variables: { program_id } }),
    };
    const first = await firstRequest(server, merchant.headers, graph.body as string);
    const pids = { server_cpu: server.pid, postgres_cpu: await postmasterOf(url) };
    return {
      postgres_url: url,
      figures: {
        requests: { unit: '/s', better: 'higher', doc: `requests answered in a second, ${connections} connections` },
        p50: { unit: 'ms', better: 'lower', doc: 'a request under that load' },
        p99: { unit: 'ms', better: 'lower', doc: 'the same' },
        server_cpu: { unit: 'µs', better: 'lower', doc: 'CPU time a request, of the process that answers it' },
        postgres_cpu: { unit: 'µs', better: 'lower', doc: 'CPU time a request, of Postgres' },
      },
      notes: [
        `The first request of a process for GraphQL took ${first.ms.toFixed(0)} ms and ${first.mib.toFixed(0)} MiB; one that is not asked for it pays neither.`,
        'Both answers hold the same fields of the sales, the customers and the partners that GraphQL names; the REST list gives all others too.',
      ],
      sides: [
        {
          name: 'rest',
          doc: 'GET /v1/sales with two expansions',
          run: (seconds) => load(pids, server.url, rest, seconds),
        },
        {
          name: 'graphql',
          doc: 'POST /graphql with two relations',
          baseline: 'rest',
          run: (seconds) => load(pids, server.url, graph, seconds),
        },
      ],
    };
  },
};

const list = `query ($program_id: String!) {
  sales(first: 20, condition: { program_id: $program_id }) {
    nodes {
      id program_id partner_id customer_id external_charge_id currency amount_minor net_amount_minor refunded_minor status
      is_first_sale occurred_at created_at updated_at
      customer { id email name status lead_at converted_at created_at }
      partner { id handle email first_name last_name status created_at }
    }
  }
}`;

/** Measures the first request, which loads PostGraphile and builds the schema. */
async function firstRequest(server: Running, headers: Record<string, string>, body: string) {
  const before = await memoryOf(server);
  const began = performance.now();
  const response = await fetch(`${server.url}/graphql`, { method: 'POST', headers, body });
  const { data, errors } = (await response.json()) as { data?: { sales: { nodes: unknown[] } }; errors?: unknown };
  if (data?.sales.nodes.length !== 20) throw new Error(`GraphQL answered ${JSON.stringify(errors ?? data)}`);
  return { ms: performance.now() - began, mib: ((await memoryOf(server)) - before) / 2 ** 20 };
}

const memoryOf = async ({ pid }: Running): Promise<number> => (await usedBy(pid))?.memory_bytes ?? 0;

async function load(
  pids: Record<string, number | undefined>,
  url: string,
  asked: Asked,
  seconds: number,
): Promise<Sample> {
  const before = await cpuOf(pids);
  const done = await closedLoop(url, { connections, seconds, next: () => asked });
  const after = Object.entries(await cpuOf(pids));
  const count = done.latencies_ms.length;
  const cpu = after.map(([name, us]) => [name, (us - (before[name] as number)) / count]);
  return { requests: count / done.seconds, ...latencies(done), ...Object.fromEntries(cpu) };
}
