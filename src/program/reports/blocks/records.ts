import sql, { join, raw, type Sql } from 'sql-template-tag';
import { fact_columns } from '../metric.ts';

const types = join(fact_columns.map((name) => raw(`${name} bigint`)));

/**
 * Rows of sums for a statement, as rows `r`.
 * @param fields what they have besides the measures, each with its type
 */
export const recordsOf = (rows: object[], fields: string): Sql =>
  sql`json_to_recordset(${JSON.stringify(rows)}::json) as r (${raw(fields)}, ${types})`;
