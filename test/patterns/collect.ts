/** All regular expressions of the service: those that its sources write, and those that its modules build when they are loaded. */
import { globSync, readFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { join, relative } from 'node:path';
import { type NewExpression, type Node, parse } from 'acorn';
import { full } from 'acorn-walk';

export interface Pattern {
  source: string;
  flags: string;
  /** File and line, or what built it. */
  at: string;
}

const root = join(import.meta.dirname, '../..');

/** The literals of all files, and where else patterns are made: `file:line` of each `new RegExp`. */
export function writtenPatterns(): { literals: Pattern[]; made_at: string[] } {
  const literals: Pattern[] = [];
  const made_at: string[] = [];
  for (const file of globSync('{src,tasks}/**/*.ts', { cwd: root })) {
    const code = stripTypeScriptTypes(readFileSync(join(root, file), 'utf8'));
    full(parse(code, { ecmaVersion: 'latest', sourceType: 'module', locations: true }), (node: Node) => {
      const at = `${file}:${node.loc?.start.line}`;
      const { regex } = node as Node & { regex?: { pattern: string; flags: string } };
      if (regex) literals.push({ source: regex.pattern, flags: regex.flags, at });
      if (isMaking(node)) made_at.push(at);
    });
  }
  return { literals, made_at };
}

function isMaking(node: Node): boolean {
  const { callee } = node as NewExpression;
  const is_called = node.type === 'NewExpression' || node.type === 'CallExpression';
  return is_called && callee.type === 'Identifier' && callee.name === 'RegExp';
}

/** Returns the patterns that `new RegExp` makes while `work` runs. */
export async function builtPatterns(work: () => Promise<unknown>): Promise<Pattern[]> {
  const built: Pattern[] = [];
  const Original = globalThis.RegExp;
  globalThis.RegExp = new Proxy(Original, {
    construct(target, given, as) {
      const made = Reflect.construct(target, given, as) as RegExp;
      const { stack = '' } = new Error();
      const at = /(?:file:\/\/)?(\/[^()\n]*\/src\/[^()\n]*?):\d+\)?$/m.exec(stack)?.[1] ?? '';
      if (at !== '' && !at.includes('node_modules'))
        built.push({ source: made.source, flags: made.flags, at: relative(root, at) });
      return made;
    },
  });
  try {
    await work();
  } finally {
    globalThis.RegExp = Original;
  }
  return built;
}

/** Modules that only define things: what runs by itself is left out, and what takes long to load and builds none (`unseen` would tell). */
export function modules(): string[] {
  const runs =
    /(?:_thread|main|train|worker)\.ts$|^src\/(?:data|commands|command_line|demo|embedded_postgres)\/|^src\/(?!config)\w+\.ts$/;
  return globSync('src/**/*.ts', { cwd: root })
    .filter((file) => !runs.test(file))
    .map((file) => join(root, file));
}
