/** A client that browses as a person does: it keeps cookies, follows redirections, and sends forms as the page has them. */

import { ElementType, parseDocument } from 'htmlparser2';
import { request } from 'undici';

export interface Page {
  status: number;
  /** The path that it ended at, with its query. */
  path: string;
  headers: Record<string, string | string[] | undefined>;
  html: string;
  /** Its text, without tags. */
  text: string;
  forms: Form[];
  links: string[];
}

export interface Form {
  action: string;
  method: string;
  /** The fields with their values, as they would be sent. */
  fields: Record<string, string>;
  /** The names of its boxes, ticked or not. */
  boxes: string[];
  /** The text of its button. */
  button: string;
}

export interface Browser {
  cookies: Map<string, string>;
  get(path: string): Promise<Page>;
  /** Sends a form of a page, with some of its fields filled in. */
  submit(form: Form | undefined, filled?: Record<string, string>): Promise<Page>;
  post(path: string, fields: Record<string, string>, headers?: Record<string, string>): Promise<Page>;
}

// biome-ignore lint/suspicious/noExplicitAny: nodes of the parser
type Node = any;

export function browse(base_url: string): Browser {
  const cookies = new Map<string, string>();
  const go = async (
    method: 'GET' | 'POST',
    path: string,
    body?: string,
    headers: Record<string, string> = {},
  ): Promise<Page> => {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const answer = await request(new URL(path, base_url), {
      method,
      headers: {
        accept: 'text/html',
        ...(cookie ? { cookie } : {}),
        ...(body === undefined
          ? {}
          : { 'content-type': 'application/x-www-form-urlencoded', origin: new URL(base_url).origin }),
        ...headers,
      },
      ...(body === undefined ? {} : { body }),
    });
    for (const set of [answer.headers['set-cookie'] ?? []].flat()) keep(cookies, set);
    const text = await answer.body.text();
    const { location } = answer.headers;
    if (answer.statusCode >= 300 && answer.statusCode < 400 && typeof location === 'string')
      return go('GET', new URL(location, new URL(path, base_url)).href.slice(new URL(base_url).origin.length));
    return { status: answer.statusCode, path, headers: answer.headers, html: text, ...partsOf(text) };
  };
  const browser: Browser = {
    cookies,
    get: (path) => go('GET', path),
    post: (path, fields, headers) => go('POST', path, new URLSearchParams(fields).toString(), headers),
    submit(form, filled = {}) {
      if (!form) throw new Error('The page has no such form.');
      for (const name of Object.keys(filled))
        if (!(name in form.fields) && !form.boxes.includes(name))
          throw new Error(`The form has no field ${name}: ${Object.keys(form.fields)}`);
      const fields = { ...form.fields, ...filled };
      if (form.method === 'post') return browser.post(form.action, fields);
      return browser.get(`${form.action}?${new URLSearchParams(fields)}`);
    },
  };
  return browser;
}

function keep(cookies: Map<string, string>, set: string): void {
  const [pair = '', ...attributes] = set.split('; ');
  const [name = '', value = ''] = pair.split('=', 2);
  if (attributes.includes('Max-Age=0')) cookies.delete(name);
  else cookies.set(name, value);
}

function partsOf(html: string): Pick<Page, 'text' | 'forms' | 'links'> {
  const all = elementsOf(parseDocument(html));
  return {
    text: textOf(all.find(({ name }) => name === 'body') ?? { children: [] })
      .replaceAll(/\s+/g, ' ')
      .trim(),
    forms: all.filter(({ name }) => name === 'form').map(formOf),
    links: all.filter(({ name }) => name === 'a').map(({ attribs }) => attribs.href as string),
  };
}

const elementsOf = (node: Node): Node[] => [
  ...(node.type === ElementType.Tag || node.type === ElementType.Script || node.type === ElementType.Style
    ? [node]
    : []),
  ...(node.children ?? []).flatMap(elementsOf),
];

const textOf = (node: Node): string =>
  node.type === ElementType.Text ? node.data : (node.children ?? []).map(textOf).join(' ');

function formOf(form: Node): Form {
  const fields: Record<string, string> = {};
  const boxes: string[] = [];
  let button = '';
  for (const { name, attribs, children } of elementsOf(form)) {
    if (name === 'button') button ||= textOf({ children }).trim();
    if (attribs.name === undefined) continue;
    if (name === 'input' && attribs.type === 'checkbox') boxes.push(attribs.name);
    if (name === 'input' && attribs.type === 'checkbox' && !('checked' in attribs)) continue;
    // Boxes of one name are lines of one value.
    if (name === 'input' && attribs.type === 'checkbox' && attribs.name in fields)
      fields[attribs.name] += `\n${attribs.value}`;
    else if (name === 'input') fields[attribs.name] = attribs.value ?? '';
    if (name === 'textarea') fields[attribs.name] = textOf({ children }).replace(/^\n/, '');
    if (name === 'select') fields[attribs.name] = chosen(children);
  }
  const { action = '', method = 'get' } = form.attribs;
  return { action, method, fields, boxes, button };
}

function chosen(children: Node[]): string {
  const options = children.flatMap(elementsOf).filter(({ name }) => name === 'option');
  const option = options.find(({ attribs }) => 'selected' in attribs) ?? options[0];
  return option ? (option.attribs.value ?? textOf(option).trim()) : '';
}
