/** A person who has no mouse: where Tab leads on a page, and what they press. */
import type { Page } from 'playwright-core';

/** The controls of a page, in the order in which they stand there. */
const actions = 'a[href], button, input:not([type="hidden"]), select, textarea, summary, [tabindex="0"]';

export interface Walk {
  /** The places of what Tab led to, among all that can be done. */
  places: number[];
  /** How many there are that can be seen. */
  count: number;
  /** Those that had the focus, and did not show it. */
  unseen: string[];
}

/** Presses Tab from the top of the page to its end. */
export async function walk(page: Page): Promise<Walk> {
  const count = (await page.evaluate(`
    (() => {
      const isShown = (one) => one.checkVisibility({ visibilityProperty: true }) && !one.disabled;
      window.actions = [...document.querySelectorAll(${JSON.stringify(actions)})].filter(isShown);
      return window.actions.length;
    })()`)) as number;
  const places: number[] = [];
  const unseen: string[] = [];
  // A field for a time has several parts, each with a stop.
  for (let presses = 0; places.at(-1) !== count - 1 && presses < 12 * count; presses++) {
    await page.keyboard.press('Tab');
    const { place, outline, html } = (await page.evaluate(`
      (() => {
        const { activeElement } = document;
        const { outlineStyle, outlineWidth } = getComputedStyle(activeElement);
        return { place: window.actions.indexOf(activeElement), outline: outlineStyle === 'none' ? '0px' : outlineWidth, html: activeElement.outerHTML.slice(0, 120) };
      })()`)) as { place: number; outline: string; html: string };
    if (place === places.at(-1)) continue;
    places.push(place);
    if (outline === '0px') unseen.push(html);
  }
  return { places, count, unseen };
}

/** Presses Tab until the focus is on what has this selector. */
export async function tabTo(page: Page, selector: string): Promise<void> {
  for (let presses = 0; presses < 300; presses++) {
    await page.keyboard.press('Tab');
    if (await page.evaluate(`document.activeElement.matches(${JSON.stringify(selector)})`)) return;
  }
  throw new Error(`Tab does not lead to ${selector}.`);
}
