import { randomBytes } from 'node:crypto';
import { createReadStream, createWriteStream, existsSync } from 'node:fs';
import { mkdir, readFile, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { fileURLToPath } from 'node:url';
import { createBrotliDecompress } from 'node:zlib';
import { type Browser, type BrowserContext, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import t from 'tap';

/** A page in a profile of its own: cookies and storage are empty, and shared with no other tab. */
export interface Tab {
  page: Page;
  context: BrowserContext;
  /** Errors that pages of the profile left uncaught or wrote to the console, as the browser words them. */
  errors: string[];
}

/** Opens a page in a new profile, in the one Chromium of the test file. Each host below `.test` is this machine, whose certificates are accepted. */
export async function openTab(options: BrowserContextOptions = {}): Promise<Tab> {
  browser ??= startChromium();
  // With its own name, which says HeadlessChrome, it is a bot.
  const userAgent = `Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/${(await browser).version()} Safari/537.36`;
  const context = await (await browser).newContext({ ignoreHTTPSErrors: true, userAgent, ...options });
  const errors: string[] = [];
  context.on('weberror', (error) => errors.push(error.error().message));
  context.on('console', (message) => {
    if (message.type() === 'error') errors.push(message.text());
  });
  return { page: await context.newPage(), context, errors };
}

let browser: Promise<Browser> | undefined;

/** Starts Chromium, which ends with the test file. If this process dies, so does Chromium: it reads commands from a pipe that the process holds open. */
async function startChromium(): Promise<Browser> {
  const signals = { handleSIGINT: false, handleSIGTERM: false, handleSIGHUP: false }; // the runner handles them
  const args = ['--host-resolver-rules=MAP *.test 127.0.0.1'];
  const started = await chromium.launch({ executablePath: await unpackedChromium(), args, ...signals });
  t.teardown(async () => {
    browser = undefined;
    await started.close();
  });
  return started;
}

/** Unpacks the Chromium of the package `@sparticuz/chromium`, once for each version. The file appears whole, whoever unpacks it at the same time. */
async function unpackedChromium(): Promise<string> {
  const packed = fileURLToPath(new URL('../bin/chromium.br', import.meta.resolve('@sparticuz/chromium')));
  const { version } = JSON.parse(await readFile(join(packed, '../../package.json'), 'utf8')) as { version: string };
  const directory = join(import.meta.dirname, '../node_modules/.cache');
  const path = join(directory, `chromium-${version}`);
  if (existsSync(path)) return path;
  await mkdir(directory, { recursive: true });
  const partial = `${path}-${randomBytes(8).toString('hex')}`;
  await pipeline(createReadStream(packed), createBrotliDecompress(), createWriteStream(partial, { mode: 0o755 }));
  await rename(partial, path);
  return path;
}
