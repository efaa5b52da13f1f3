import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { startTestPostgres } from './postgres.ts';

/**
 * `npm test`: typecheck, lint, then every test file, on one Postgres that this starts. The last line is `N passed, N failed`.
 * Arguments name test files; without any, all run.
 */
const files = process.argv.slice(2);
let passed = 0;
let failed = 0;

for (const check of files.length === 0 ? ['tsc --noEmit', 'biome check .'] : []) {
  const { code } = await command(check.split(' '));
  if (code === 0) passed++;
  else failed++;
}

const postgres = await startTestPostgres();
process.on('SIGINT', () => {});
process.on('SIGTERM', () => {});
try {
  const { code, output } = await command(['tap', '--reporter=terse', ...files], { RAIL_TEST_POSTGRES: postgres.url });
  const total = /# \{ total: (\d+)(?:, pass: (\d+))?(?:, fail: (\d+))?/.exec(stripColours(output));
  passed += Number(total?.[2] ?? 0);
  failed += Number(total?.[3] ?? 0);
  if (code !== 0 && failed === 0) failed = 1;
} finally {
  await postgres.stop();
}
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;

async function command(
  [program, ...args]: string[],
  environment: NodeJS.ProcessEnv = {},
): Promise<{ code: number; output: string }> {
  const child = spawn(program as string, args, {
    env: { ...process.env, ...environment },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => {
    output += chunk;
    process.stdout.write(chunk);
  });
  const [code] = await once(child, 'close');
  return { code: code ?? 1, output };
}

function stripColours(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: colours begin with the escape character
  return text.replaceAll(/\u001b\[[0-9;]*m/g, '');
}
