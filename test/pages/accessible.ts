import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import type { Page } from 'playwright-core';

const axe = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const rules = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];

interface Violation {
  id: string;
  nodes: { html: string; failureSummary?: string }[];
}

/** Says what of WCAG 2.2 AA axe finds violated on the page that is open, and whether something is wider than the window. */
export async function faultsOf(page: Page): Promise<string[]> {
  await page.evaluate(axe);
  const options = JSON.stringify({ runOnly: rules, resultTypes: ['violations'] });
  const { violations, is_wide } = (await page.evaluate(
    `axe.run(${options}).then(({ violations }) => ({ violations, is_wide: document.documentElement.scrollWidth > innerWidth }))`,
  )) as { violations: Violation[]; is_wide: boolean };
  const faults = violations.map(
    ({ id, nodes }) => `${id}: ${nodes[0]?.html.slice(0, 200)} ${nodes[0]?.failureSummary?.slice(0, 200)}`,
  );
  return is_wide ? [...faults, 'wider than the window'] : faults;
}
