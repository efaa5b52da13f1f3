import { type Browser, browse, type Form, type Page } from '../pages/browse.ts';
import type { Shop } from '../shop.ts';

/** The browser of a partner who has signed in by a magic link. */
export async function signedIn(
  { merchant }: Pick<Shop, 'merchant'>,
  partner_id: string,
  address: string,
): Promise<Browser> {
  const { url } = await merchant.post(`/v1/partners/${partner_id}/magic_link`);
  const browser = browse(address);
  const page = await browser.get(new URL(url).pathname + new URL(url).search);
  const home = await browser.submit(page.forms[0]);
  if (home.path !== '/portal') throw new Error(`Signing in ended at ${home.path}.`);
  return browser;
}

/** The form of a page that is sent to an address. */
export const formAt = (page: Page, action: string): Form | undefined =>
  page.forms.find((form) => form.action === action);
