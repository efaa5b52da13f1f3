/** Reads visited pages in a thread: whatever a stranger wrote, the rest of the worker goes on. */
import type { Logger } from 'pino';
import { TimedThread } from '../../core/threads/timed_thread.ts';
import type { Contacts } from '../addresses/contacts.ts';
import type { Brand } from '../brands/brand.ts';
import type { Evidence } from '../evidence/evidence.ts';
import type { Page, VisitedPage } from '../pages/page.ts';

/** A page to read. With a brand, for evidence about it; else for addresses. */
export interface PageTask {
  visited: VisitedPage;
  brand?: Brand;
}

export interface ReadForBrand {
  page: Page;
  evidence: Evidence[];
  score: number;
}

const module = new URL('./page_thread.ts', import.meta.url);

export class PageReader {
  readonly #thread: TimedThread<PageTask, ReadForBrand | Contacts>;
  readonly #log: Logger;
  #is_closed = false;

  /** @param of another module, for a page that nothing is slow on */
  constructor(log: Logger, of: URL = module, most_ms = 5_000) {
    this.#log = log;
    this.#thread = new TimedThread(of, { name: 'Reading a page', most_ms, most_heap_mib: 256 });
  }

  /** Undefined: it cannot be read. */
  async forBrand(visited: VisitedPage, brand: Brand): Promise<ReadForBrand | undefined> {
    return (await this.#read({ visited, brand })) as ReadForBrand | undefined;
  }

  /** Undefined: it cannot be read. */
  async contacts(visited: VisitedPage): Promise<Contacts | undefined> {
    return (await this.#read({ visited })) as Contacts | undefined;
  }

  /** Reads a page once: what takes too long, needs too much memory or fails would do so again. @throws Error where it is closed */
  async #read({ visited: { text, url, content }, ...task }: PageTask): Promise<ReadForBrand | Contacts | undefined> {
    try {
      return await this.#thread.ask({ visited: { text, url, content }, ...task });
    } catch (error) {
      if (this.#is_closed) throw error;
      this.#log.warn({ err: error, host: URL.parse(url)?.hostname }, 'a page could not be read');
      return undefined;
    }
  }

  close(): void {
    this.#is_closed = true;
    this.#thread.close();
  }
}
