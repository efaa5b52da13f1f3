/** An XML reader of the tests' own, as strict as the files that Rail writes: elements with text or children, and no entities. */
export interface Node {
  name: string;
  attributes: string;
  text: string;
  children: Node[];
}

/** @throws Error where the text is not well-formed */
export function readXml(xml: string): Node {
  const root: Node = { name: '', attributes: '', text: '', children: [] };
  const open = [root];
  for (const [, closes, name = '', attributes = '', text = ''] of tokens(xml)) {
    if (closes) {
      const closed = open.pop();
      if (closed?.name !== name) throw new Error(`</${name}> closes <${closed?.name}>`);
      if (text.trim() !== '') throw new Error(`text after </${name}>`);
      continue;
    }
    const node = { name, attributes: attributes.trim(), text, children: [] };
    open.at(-1)?.children.push(node);
    open.push(node);
  }
  if (open.length !== 1 || root.children.length !== 1) throw new Error('an element is not closed');
  return root.children[0] as Node;
}

function tokens(xml: string): RegExpMatchArray[] {
  const body = xml.replace('<?xml version="1.0" encoding="UTF-8"?>\n', '');
  const found = [...body.matchAll(/<(\/?)([A-Za-z0-9]+)((?: [A-Za-z]+="[^"<>&]*")*)>([^<>&]*)/g)];
  if (found.map(([whole]) => whole).join('') !== body) throw new Error('there is something besides elements and text');
  return found;
}

/** The nodes at the end of the path. */
export const all = (node: Node, ...path: string[]): Node[] =>
  path.reduce(
    (nodes, name) => nodes.flatMap(({ children }) => children.filter((child) => child.name === name)),
    [node],
  );

/** The text of the one node at the end of the path. */
export function one(node: Node, ...path: string[]): string {
  const [found, ...others] = all(node, ...path);
  if (!found || others.length > 0) throw new Error(`${path.join('/')} stands ${others.length + (found ? 1 : 0)} times`);
  return found.text;
}
