import sql from 'sql-template-tag';
import { logCommand } from '../../core/access/audit_log.ts';
import { run } from '../../core/postgres/database.ts';
import { transaction } from '../../core/postgres/transaction.ts';
import { operationOf, perform } from '../../core/resource/perform.ts';
import { Problem } from '../../core/values/problem.ts';
import {
  type PublishableKey,
  publishableKeyOperations,
  publishableKeys,
} from '../../program/snippet/publishable_key.ts';
import { openServices } from '../../service.ts';
import { choose } from '../chosen.ts';
import { answer, type Opened, UsageError, withStore } from '../command.ts';
import { table } from '../output/table.ts';

interface NewKeyOptions {
  program?: string;
  name?: string;
  mode?: 'live' | 'test';
  origin: string[];
  json?: boolean;
}

type Created = PublishableKey & { signing_secret: string; snippet: string };

export const createPublishableKey = ({ program, origin, name, mode, json }: NewKeyOptions): Promise<void> =>
  withStore(async (opened) => {
    const { id: program_id, organization_id } = await choose(opened, 'program', program, { or_demo: true });
    const body = { program_id, allowed_origins: origin, ...(name ? { name } : {}), ...(mode ? { mode } : {}) };
    const key = await performed<Created>(opened, organization_id, 'publishable_keys.create', { body });
    const lines = [
      `Created ${key.id} for ${key.program_id}. Put this into your pages:`,
      ...['', key.snippet, '', 'The secret by which your server signs leads, shown this once:', '', key.signing_secret],
    ];
    answer(key, { json, lines });
  });

export const revokePublishableKey = (id: string, { json }: { json?: boolean }): Promise<void> =>
  withStore(async (opened) => {
    const [known] = await run<{ organization_id: string }>(
      opened.store.database,
      sql`select organization_id from program.publishable_key where id = ${id}`,
    );
    if (!known)
      throw new Error(`There is no publishable key '${id}': 'npx --no rail publishable-key list' shows them.`);
    const given = { params: { id } };
    const key = await performed<PublishableKey>(opened, known.organization_id, 'publishable_keys.revoke', given);
    answer(key, { json, lines: [`Revoked ${key.id} (${key.name}): it is refused from now on.`] });
  });

export const listPublishableKeys = ({ program, json }: { program?: string; json?: boolean }): Promise<void> =>
  withStore(async ({ store }) => {
    const keys = await run<PublishableKey>(
      store.database,
      sql`select ${publishableKeys.columns} from ${publishableKeys.from}
        where ${program ?? null}::text is null or t.program_id = ${program ?? null} order by t.id`,
    );
    const columns = ['ID', 'PROGRAM', 'NAME', 'STATE', 'SETUP', 'LAST USED AT', 'ORIGINS', 'KEY'];
    const rows = keys.map((key) => [
      ...[key.id, key.program_id, key.name, key.revoked_at === null ? 'active' : 'revoked', key.setup ?? ''],
      ...[key.last_used_at ?? 'never', key.allowed_origins.join(' '), key.key],
    ]);
    answer(keys, { json, lines: table(columns, rows, 'There is no publishable key.') });
  });

/** Performs an operation of these keys, with its entry in the audit log. @throws UsageError of what the operation refuses */
async function performed<Reply extends { id: string }>(
  { config, log, store }: Opened,
  organization_id: string,
  name: string,
  given: { params?: object; body?: object },
): Promise<Reply> {
  const services = await openServices(config, log, store.database);
  const operation = operationOf(publishableKeyOperations, name);
  const outcome = await transaction(store, { organization_id, request_id: null }, async (tx) => {
    const reply = await perform<Reply>(tx, { operation, by: '', services }, given);
    if (!(reply instanceof Problem)) logCommand(tx, name, reply.id, Object.keys(given.body ?? {}));
    return reply;
  });
  if (outcome instanceof Problem) throw new UsageError(outcome.message);
  return outcome;
}
