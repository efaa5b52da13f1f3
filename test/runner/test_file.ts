import { once } from 'node:events';
import { type FileResult, hanging_ms, outcomeOf, timeout_s } from './outcome.ts';
import { killGroup, startGroup } from './process_group.ts';
import { cpuSaid } from './profile.ts';

/**
 * Runs a test file in a process of its own.
 * @param isOnly shows at once what the file says on standard error
 */
export async function runTestFile(
  file: string,
  environment: NodeJS.ProcessEnv,
  { isOnly }: { isOnly: boolean },
): Promise<FileResult> {
  const begun = performance.now();
  const child = startGroup(
    [file],
    { TAP_TIMEOUT: String(timeout_s), RAIL_TEST_FILE: file, ...environment },
    { stdin: 'ignore', stderr: isOnly ? 'inherit' : 'pipe' },
  );
  const timer = setTimeout(() => killGroup(child), hanging_ms);
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream?.on('data', (chunk: string) => {
      output += chunk;
    });
  const [code, signal] = await once(child, 'close');
  clearTimeout(timer);
  const seconds = (performance.now() - begun) / 1000;
  return { file, seconds, cpu: cpuSaid(output), ...outcomeOf(output, code, signal) };
}
