/** Writes plain values as YAML that people can read. */

export type Value = string | number | boolean | Value[] | { [name: string]: Value };

/** Documents, each under its line. */
export const documents = (values: Value[]): string =>
  values.map((value) => `---\n${block(value, '').trimStart()}\n`).join('');

function block(value: Value, indent: string): string {
  if (typeof value !== 'object') return scalar(value);
  if (Array.isArray(value)) {
    if (value.every((one) => typeof one !== 'object')) return `[${value.map((one) => scalar(one)).join(', ')}]`;
    return value.map((one) => `\n${indent}- ${block(one, `${indent}  `).trimStart()}`).join('');
  }
  const entries = Object.entries(value);
  if (entries.length === 0) return '{}';
  return entries.map(([name, one]) => `\n${indent}${scalar(name)}:${under(one, indent)}`).join('');
}

function under(value: Value, indent: string): string {
  const text = block(value, `${indent}  `);
  return text.startsWith('\n') ? text : ` ${text}`;
}

/** JSON is YAML: quoted, but for words that nothing takes for something else. */
function scalar(value: string | number | boolean): string {
  const is_word = typeof value === 'string' && /^[A-Za-z][A-Za-z0-9_./-]*$/.test(value);
  return is_word && !/^(?:true|false|null|yes|no|on|off|y|n)$/i.test(value) ? value : JSON.stringify(value);
}
