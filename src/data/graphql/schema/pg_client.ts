/** The interface through which PostGraphile runs its statements. */
export type WithPgClient = <T>(settings: unknown, callback: (client: PgClient) => T | Promise<T>) => Promise<T>;

export interface PgClient {
  query(statement: Statement): Promise<{ rows: unknown[]; rowCount: number | null }>;
  withTransaction<T>(callback: (client: PgClient) => Promise<T>): Promise<T>;
}

export interface Statement {
  text: string;
  values?: unknown[];
  arrayMode?: boolean;
}
