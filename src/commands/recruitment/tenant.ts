import sql from 'sql-template-tag';
import { type Database, run } from '../../core/postgres/database.ts';

/** The organization of a brand. @throws Error when there is no such brand */
export async function organizationOfBrand(database: Database, brand_id: string): Promise<string> {
  const [brand] = await run<{ organization_id: string }>(
    database,
    sql`select organization_id from recruitment.brand where id = ${brand_id} and deleted_at is null`,
  );
  if (!brand) throw new Error(`There is no brand '${brand_id}'.`);
  return brand.organization_id;
}

/** The organization of a search or a scan. @throws Error when there is none with this id */
export async function organizationOfRun(database: Database, kind: 'search' | 'scan', id: string): Promise<string> {
  const [found] = await run<{ organization_id: string }>(
    database,
    sql`select organization_id from recruitment.run where id = ${id} and kind = ${kind}`,
  );
  if (!found) throw new Error(`There is no ${kind} '${id}'.`);
  return found.organization_id;
}

/** The organization of an inbox. @throws Error when there is none with this id */
export async function organizationOfInbox(database: Database, id: string): Promise<string> {
  const [found] = await run<{ organization_id: string }>(
    database,
    sql`select organization_id from recruitment.inbox where id = ${id} and deleted_at is null`,
  );
  if (!found) throw new Error(`There is no inbox '${id}'. 'npx --no rail inbox list' lists them.`);
  return found.organization_id;
}

/** The organization of a campaign. @throws Error when there is none with this id */
export async function organizationOfCampaign(database: Database, id: string): Promise<string> {
  const [found] = await run<{ organization_id: string }>(
    database,
    sql`select organization_id from recruitment.campaign where id = ${id}`,
  );
  if (!found) throw new Error(`There is no campaign '${id}'. 'npx --no rail campaign status --all' lists them.`);
  return found.organization_id;
}
