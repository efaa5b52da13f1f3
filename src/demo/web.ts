/** The web of the demo: its sites, and a search engine that knows them. */
import { createServer, type ServerResponse } from 'node:http';
import { listenNear } from './listen.ts';
import { brand_pages, demo_sites } from './sites.ts';

/** The pages of each host, by path. */
const pages: Record<string, Record<string, string>> = {
  ...Object.fromEntries(demo_sites.map((site) => [site.host, site.pages])),
  ...Object.fromEntries(Object.entries(brand_pages).map(([host, page]) => [host, { '/': page }])),
};

export const web_hosts = Object.keys(pages);

export interface DemoWeb {
  port: number;
  /** Answers as SearXNG does. */
  searxng_url: string;
  close(): Promise<void>;
}

/** Serves all sites by one HTTP server on loopback, which chooses by the Host header; under any other host it is the search engine. */
export async function startDemoWeb(wanted_port: number): Promise<DemoWeb> {
  const server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(String(request.url), 'http://localhost');
    const site = pages[String(request.headers.host).replace(/:\d+$/, '')];
    if (site) answerPage(site[pathname], response);
    else answerSearch(searchParams, port, response);
  });
  const port = await listenNear(server, wanted_port);
  const close = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  return { port, searxng_url: `http://127.0.0.1:${port}`, close };
}

function answerPage(page: string | undefined, response: ServerResponse): void {
  response.writeHead(page === undefined ? 404 : 200, { 'content-type': 'text/html; charset=utf-8' }).end(page);
}

/** The sites that contain a word of the query, on one page of results. */
function answerSearch(query: URLSearchParams, port: number, response: ServerResponse): void {
  const words = (query.get('q') ?? '').toLowerCase().match(/[a-z]{3,}/g) ?? [];
  const found = demo_sites.filter(({ title, description }) =>
    words.some((word) => `${title} ${description}`.toLowerCase().includes(word)),
  );
  const results = found.map(({ host, title, description }) => ({
    ...{ url: `http://${host}:${port}/`, title, content: description },
  }));
  response.writeHead(200, { 'content-type': 'application/json' });
  response.end(JSON.stringify({ results: query.get('pageno') === '1' ? results : [], unresponsive_engines: [] }));
}
