/** Finds the persons whom a page names, and the pages of its site that may. */
import type { VisitedPage } from '../pages/page.ts';
import { readPage } from '../pages/read.ts';
import { type ContactPage, contactPages } from './contact_pages.ts';
import { type FoundAddress, findAddresses } from './find.ts';
import { nobodysReason } from './nobody.ts';

export interface Contacts {
  /** The reason why nobody is to be found there, as a sentence: then there is nothing else. Undefined: somebody may be. */
  reason: string | undefined;
  /** Pages to visit after it, the best one first. */
  pages: ContactPage[];
  addresses: FoundAddress[];
}

const most_pages = 5;

/** Never throws; time and size are bounded, whatever the page holds. */
export function contactsOf({ text, url, content }: VisitedPage): Contacts {
  const page = readPage(text, url, content);
  const reason = nobodysReason(text, page);
  if (reason !== undefined) return { reason, pages: [], addresses: [] };
  return { reason, pages: contactPages(page, most_pages), addresses: findAddresses(text) };
}
