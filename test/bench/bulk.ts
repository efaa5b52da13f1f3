import pg from 'pg';

export type Load = (client: pg.Client) => Promise<unknown>;

/** As many as there are cores to load with on most machines, and the server's own writers beside them. */
const connections = 2;

/** Many rows at once: over two connections, without triggers, with the indexes made after the rows. What it loads is on disk when it ends. */
export class Bulk {
  readonly #clients: pg.Client[];

  private constructor(clients: pg.Client[]) {
    this.#clients = clients;
  }

  static async open(url: string): Promise<Bulk> {
    const clients = Array.from({ length: connections }, () => new pg.Client({ connectionString: url }));
    for (const client of clients) {
      await client.connect();
      await client.query("set synchronous_commit = off; set maintenance_work_mem = '512MB'; set work_mem = '512MB'");
      await client.query('set session_replication_role = replica');
    }
    return new Bulk(clients);
  }

  get client(): pg.Client {
    return this.#clients[0] as pg.Client;
  }

  /** Each connection takes the next load when it is done with one. */
  async run(loads: Load[]): Promise<void> {
    const waiting = [...loads];
    const works = this.#clients.map(async (client) => {
      for (let load = waiting.shift(); load; load = waiting.shift()) await load(client);
    });
    await Promise.all(works);
  }

  /** The indexes of tables are dropped, but for those that keep keys unique, and made again after `load`. */
  async withoutIndexes(tables: string[], load: () => Promise<void>): Promise<void> {
    const { rows } = await this.client.query<{ name: string; definition: string }>(
      `select i.indexrelid::regclass::text as name, replace(pg_get_indexdef(i.indexrelid), ' ON ONLY ', ' ON ') as definition
      from pg_index i
      where i.indrelid = any($1::regclass[]) and not exists (select from pg_constraint c where c.conindid = i.indexrelid)
      order by i.indrelid, pg_get_indexdef(i.indexrelid)`,
      [tables],
    );
    for (const { name } of rows) await this.client.query(`drop index ${name}`);
    await load();
    await this.run(
      rows.map(
        ({ definition }) =>
          (client) =>
            client.query(definition),
      ),
    );
  }

  /** While it loads, a crash would lose the rows: the server does not wait for the disk. */
  async withoutWaiting(load: () => Promise<void>): Promise<void> {
    const settings = ['fsync', 'full_page_writes', 'autovacuum'];
    for (const name of settings) await this.client.query(`alter system set ${name} = off`);
    await this.client.query('select pg_reload_conf()');
    await load();
    for (const name of settings) await this.client.query(`alter system reset ${name}`);
    await this.client.query('select pg_reload_conf()');
    await this.client.query('checkpoint');
  }

  async close(): Promise<void> {
    for (const client of this.#clients) await client.end();
  }
}
