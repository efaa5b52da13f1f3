import { randomUUID } from 'node:crypto';
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import tls from 'node:tls';
import sql from 'sql-template-tag';
import { z } from 'zod';
import type { Config } from '../config.ts';
import { createKey } from '../core/access/api_key.ts';
import { createOrganization } from '../core/access/organization.ts';
import { makeSignInLink } from '../core/access/session.ts';
import { sha256 } from '../core/encryption/vault.ts';
import { type Database, run } from '../core/postgres/database.ts';
import { type Store, type Tx, transaction } from '../core/postgres/transaction.ts';
import { operationOf, perform } from '../core/resource/perform.ts';
import type { Services } from '../core/resource/services.ts';
import { Problem } from '../core/values/problem.ts';
import { products } from '../products.ts';
import { createPartnerOperations } from '../program/partners/create_partner.ts';
import { createMagicLink } from '../program/partners/magic_link.ts';

/** Besides these, the id of each product's record, as `program_id`. */
const Demo = z
  .object({
    base_url: z.string(),
    organization_id: z.string(),
    api_key: z.string(),
    test_api_key: z.string(),
  })
  .catchall(z.string());

/** The data that a first caller needs; `demo.json` in the data directory holds the same. */
export type Demo = z.infer<typeof Demo>;

const demo_name = 'Demo';

/**
 * Makes a demo organization with a record of each product and keys, once, and keeps `demo.json` true: the same keys as long as they are good, and where
 * the service listens now.
 * @param fields what it says besides
 * @returns undefined where a database of somebody's own has organizations already
 */
export async function keepDemo(
  { config, store, services }: { config: Config; store: Store; services: Services },
  base_url: string,
  fields: Record<string, string> = {},
): Promise<Demo | undefined> {
  const { database } = store;
  // Its keys are shown here alone: where it cannot be written, no organization is made. An embedded Postgres has made the folder.
  await mkdir(config.RAIL_DATA_DIR, { recursive: true, mode: 0o711 });
  const written = await readDemo(config);
  const organization_id = (await demoOrganization(database, written)) ?? (await makeOrganization(database, config));
  if (organization_id === undefined) return undefined;
  const demo = {
    base_url,
    organization_id,
    ...(await demoRecords(store, services, organization_id, written)),
    api_key: await demoKey(database, organization_id, 'live', written?.api_key),
    test_api_key: await demoKey(database, organization_id, 'test', written?.test_api_key),
    ...fields,
  };
  await writeDemo(config, demo);
  return demo;
}

/** The pages that a first visitor opens. */
export interface DemoLinks {
  dashboard: string;
  portal: string;
}

/** Links that sign in to the dashboard as the owner, and to the portal as a partner of the program, which is made once. */
export async function demoLinks(
  { store, services }: { store: Store; services: Services },
  { organization_id, program_id, base_url }: Demo,
): Promise<DemoLinks> {
  const [owner] = await run<{ id: string }>(
    store.database,
    sql`select id from core.user_account
      where organization_id = ${organization_id} and role = 'owner' and removed_at is null order by id limit 1`,
  );
  if (!owner) throw new Error('The demo organization has no owner.');
  const partner_id = await transaction(store, { organization_id, request_id: null }, (tx) =>
    openDemoPartner(tx, String(program_id), services),
  );
  return transaction(store, { organization_id: null, request_id: null }, async (tx) => ({
    dashboard: `${base_url}/dashboard/sign_in?token=${await makeSignInLink(tx, organization_id, owner.id)}`,
    portal: (await createMagicLink(tx, organization_id, partner_id, base_url)).url,
  }));
}

const demo_partner = 'partner@demo.example.com';

async function openDemoPartner(tx: Tx, program_id: string, services: Services): Promise<string> {
  const known = await tx.maybe<{ id: string }>(sql`
    select p.id from program.partner p
    where p.organization_id = ${tx.organization_id} and p.program_id = ${program_id} and p.deleted_at is null and p.email_key = ${demo_partner}`);
  if (known) return known.id;
  const operation = operationOf(createPartnerOperations, 'partners.create');
  const made = await perform<{ id: string }>(
    tx,
    { operation, by: 'demo', services },
    { body: { program_id, email: demo_partner, first_name: 'Demo', handle: 'demo' } },
  );
  if (made instanceof Problem) throw made;
  return made.id;
}

const demoFile = ({ RAIL_DATA_DIR }: Config): string => join(RAIL_DATA_DIR, 'demo.json');

/** Trusts the mail server that a running demo has, and reaches it, as the demo itself does: for commands that open its inboxes. */
export async function asDemo(config: Config, services: Services): Promise<Services> {
  const authority = (await readDemo(config))?.mail_authority;
  if (authority === undefined) return services;
  tls.setDefaultCACertificates([...tls.getCACertificates('default'), authority]);
  return { ...services, is_demo: true, allow_private_addresses: true };
}

/** Reads `demo.json`; undefined where there is none that can be read. */
export async function readDemo(config: Config): Promise<Demo | undefined> {
  try {
    return Demo.parse(JSON.parse(await readFile(demoFile(config), 'utf8')));
  } catch {
    return undefined;
  }
}

async function writeDemo(config: Config, demo: Demo): Promise<void> {
  const unnamed = `${demoFile(config)}.${randomUUID()}`;
  await writeFile(unnamed, `${JSON.stringify(demo, null, 2)}\n`, { mode: 0o600, flush: true });
  await rename(unnamed, demoFile(config));
}

async function demoOrganization(database: Database, written: Demo | undefined): Promise<string | undefined> {
  const [found] = await run<{ id: string }>(
    database,
    sql`select id from core.organization where id = ${written?.organization_id ?? null}`,
  );
  return found?.id;
}

/** In an embedded Postgres, where `demo.json` was lost, it is found by its name. Elsewhere a name proves nothing. */
async function makeOrganization(database: Database, config: Config): Promise<string | undefined> {
  const existing = await run<{ id: string; name: string }>(
    database,
    sql`select id, name from core.organization order by id`,
  );
  if (config.DATABASE_URL && existing.length > 0) return undefined;
  const lost = existing.find(({ name }) => name === demo_name);
  if (lost) return lost.id;
  return (await createOrganization(database, { name: demo_name, owner_email: 'owner@demo.example.com' })).id;
}

async function demoRecords(
  store: Store,
  services: Services,
  organization_id: string,
  written: Demo | undefined,
): Promise<Record<string, string>> {
  const records: Record<string, string> = {};
  for (const { noun, open, fields } of demos) {
    const field = `${noun}_id`;
    await transaction(store, { organization_id, request_id: null }, async (tx) => {
      const id = await open(tx, written?.[field]);
      Object.assign(records, { [field]: id }, await fields?.(tx, id, services));
    });
  }
  return records;
}

/** The demos of the products. */
export const demos = products.flatMap(({ demo }) => demo ?? []);

async function demoKey(
  database: Database,
  organization_id: string,
  mode: 'live' | 'test',
  written: string | undefined,
): Promise<string> {
  if (written && (await isGood(database, organization_id, written))) return written;
  const { secret } = await createKey(database, { organization_id, name: `Demo ${mode}`, mode, scopes: ['*'] });
  return secret;
}

async function isGood(database: Database, organization_id: string, key: string): Promise<boolean> {
  const found = await run(
    database,
    sql`select id from core.api_key
      where organization_id = ${organization_id} and secret_sha256 = ${sha256(key)} and revoked_at is null`,
  );
  return found.length > 0;
}
