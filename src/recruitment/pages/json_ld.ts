/** Reads the JSON-LD (schema.org) of a page. */

const most_objects = 1_000;
const most_characters = 200_000;

/** All objects of a script, nested ones included, outer ones first. Nothing where it is no JSON. */
export function jsonLdObjects(text: string): Record<string, unknown>[] {
  const found: Record<string, unknown>[] = [];
  const waiting: unknown[] = [parse(text)];
  while (waiting.length > 0 && found.length < most_objects) {
    const value = waiting.shift();
    if (Array.isArray(value)) waiting.push(...value.slice(0, most_objects));
    else if (typeof value === 'object' && value !== null) {
      found.push(value as Record<string, unknown>);
      waiting.push(
        ...Object.values(value)
          .filter((each) => typeof each === 'object')
          .slice(0, most_objects),
      );
    }
  }
  return found;
}

/** The strings of a property that has one or several. */
export function stringsOf(value: unknown): string[] {
  const values = Array.isArray(value) ? value.slice(0, most_objects) : [value];
  return values.filter((each) => typeof each === 'string');
}

function parse(text: string): unknown {
  const json = text.trim().replace(/^<!\[CDATA\[|^<!--|\]\]>$|-->$/g, '');
  if (json.length > most_characters) return undefined;
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}
