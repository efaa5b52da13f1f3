const longest = 1000;

/**
 * The email address that a text holds, as people, forms and mail programs write it: `Eve <eve@example.com>`, `mailto:eve@example.com`, in quotation
 * marks, in wide letters, or with a full stop behind it. Of any other text, what is left without such signs.
 */
export function addressIn(text: string): string {
  if (text.length > longest) return text;
  const seen = text.normalize('NFKC').replaceAll(/\p{Default_Ignorable_Code_Point}/gu, '');
  const bare = /<([^<>]{3,})>/.exec(seen)?.[1] ?? seen;
  return bare
    .trim()
    .replace(/^mailto:([^?]*).*$/is, '$1')
    .replace(/^["'“„«]([^"'“”„«»]{3,})["'”“»]$/, '$1')
    .replaceAll(/\s{0,3}@\s{0,3}/g, '@')
    .replace(/^"([^"@\s]{1,64})"@/, '$1@')
    .replace(/^[\s([<]{1,9}/, '')
    .replace(/[\s.,;:!)\]>"']{1,9}$/, '');
}
