import sql from 'sql-template-tag';
import type { Vault } from '../../core/encryption/vault.ts';
import { type Store, type Tx, transaction } from '../../core/postgres/transaction.ts';
import { newId } from '../../core/values/id.ts';

const chunk_characters = 131_072;
const chunks_at_once = 8;

/** Stores the file of an import, in parts, sealed: it holds addresses. */
export async function storeChunks(tx: Tx, vault: Vault, import_id: string, document: string): Promise<void> {
  const parts = partsOf(document);
  for (let first = 0; first < parts.length; first += chunks_at_once) {
    const rows = parts.slice(first, first + chunks_at_once).map((text, nth) => {
      const id = newId('fic');
      return { id, number: first + nth, content: vault.encrypt(text, id) };
    });
    await tx.all(sql`
      insert into recruitment.import_chunk (organization_id, id, import_id, number, content)
      select ${tx.organization_id}, r.id, ${import_id}, r.number, r.content
      from unnest(
        ${rows.map(({ id }) => id)}::text[], ${rows.map(({ number }) => number)}::int[], ${rows.map(({ content }) => content)}::bytea[]
      ) as r (id, number, content)`);
  }
}

/** Never between the two halves of a character. */
function partsOf(document: string): string[] {
  const parts: string[] = [];
  for (let start = 0; start < document.length; ) {
    const end = start + chunk_characters;
    const is_split = /[\ud800-\udbff]/.test(document.charAt(end - 1));
    parts.push(document.slice(start, is_split ? end + 1 : end));
    start = is_split ? end + 1 : end;
  }
  return parts;
}

/** The file of an import, a part at a time, each read in a transaction of its own. */
export async function* readChunks(
  store: Store,
  vault: Vault,
  { organization_id, id }: { organization_id: string; id: string },
): AsyncGenerator<string> {
  for (let number = 0; ; number++) {
    const chunk = await transaction(store, { organization_id, request_id: null }, (tx) =>
      tx.maybe<{ id: string; content: Buffer }>(sql`
        select c.id, c.content from recruitment.import_chunk c
        where c.organization_id = ${organization_id} and c.import_id = ${id} and c.number = ${number}`),
    );
    if (!chunk) return;
    yield vault.decrypt(chunk.content, chunk.id);
  }
}

export const deleteChunks = (tx: Tx, import_id: string): Promise<object[]> =>
  tx.all(sql`
    delete from recruitment.import_chunk c
    where c.organization_id = ${tx.organization_id} and c.import_id = ${import_id}`);
