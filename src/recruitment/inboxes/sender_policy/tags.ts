/** The `tag=value` lists that DKIM and DMARC records are: RFC 6376, section 3.2. Tags in lower case; undefined for what is no such list. */
export function parseTags(record: string): Map<string, string> | undefined {
  const tags = new Map<string, string>();
  for (const part of record.split(';')) {
    if (part.trim() === '') continue;
    const [, tag, value] = /^([a-z][a-z0-9_]*)\s*=\s*(.*)$/is.exec(part.trim()) ?? [];
    if (tag === undefined || tags.has(tag.toLowerCase())) return undefined;
    tags.set(tag.toLowerCase(), value as string);
  }
  return tags;
}
