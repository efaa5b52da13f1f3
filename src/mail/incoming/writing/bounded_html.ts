/** HTML as far as it is worth reading: whoever writes to an inbox chooses its size and its nesting, and a worker reads it among other things. */

/** Real mails of some length have a tenth of it. */
const most_length = 128 << 10;
const most_tags = 4_000;
const most_depth = 50;

/** They hold no text. What is to be skipped ends with its end tag, a comment with `-->`. */
const without_text = /^<(style|script|title|!--)/i;
/** They end with the next of their kind, or at once: they do not nest. */
const flat = /^(?:area|base|br|col|dd|dt|hr|img|input|li|link|meta|option|p|source|t[dhr]|tbody|tfoot|thead|wbr)$/i;

/** Without styles and comments, up to so many tags; beyond the depth texts stay and tags go. */
export function boundedHtml(html: string): string {
  const kept: string[] = [];
  let length = 0;
  let depth = 0;
  let tags = 0;
  const keep = (text: string) => {
    kept.push(text.slice(0, most_length - length));
    length += text.length;
  };
  for (let at = 0; at < html.length && length < most_length && tags < most_tags; ) {
    const begin = html.indexOf('<', at);
    keep(html.slice(at, begin < 0 ? html.length : begin));
    if (begin < 0) break;
    at = endOfTag(html, begin);
    const tag = html.slice(begin, at);
    const name = /^<\/?([A-Za-z][A-Za-z0-9:-]{0,30})/.exec(tag)?.[1];
    if (without_text.test(tag)) continue;
    tags += 1;
    if (name === undefined || flat.test(name) || tag.endsWith('/>')) keep(tag);
    else if (tag.startsWith('</')) {
      if (depth <= most_depth) keep(tag);
      depth = Math.max(0, depth - 1);
    } else {
      depth += 1;
      if (depth <= most_depth) keep(tag);
    }
  }
  return kept.join('');
}

/** Returns the position at which the text continues after a tag, or after the element that it begins, if that holds no text. */
function endOfTag(html: string, begin: number): number {
  const [, element] = without_text.exec(html.slice(begin, begin + 10)) ?? [];
  if (element === '!--') return behind(html, '-->', begin + 2);
  const end = behind(html, '>', begin);
  if (element === undefined) return end;
  const end_tag = new RegExp(`</${element}`, 'gi');
  end_tag.lastIndex = end;
  const found = end_tag.exec(html);
  return found ? behind(html, '>', found.index) : html.length;
}

function behind(html: string, mark: string, from: number): number {
  const at = html.indexOf(mark, from);
  return at < 0 ? html.length : at + mark.length;
}
