/** `GET /demo` of `rail start`: a page of a website with the snippet, to try it. Its key is made with the demo. */
import { createHash } from 'node:crypto';
import type { FastifyInstance } from 'fastify';
import sql from 'sql-template-tag';
import type { Tx } from '../../core/postgres/transaction.ts';
import { operationOf, perform } from '../../core/resource/perform.ts';
import { tenant } from '../../core/resource/resource.ts';
import type { Services } from '../../core/resource/services.ts';
import { Problem } from '../../core/values/problem.ts';
import { type PublishableKey, publishableKeyOperations, publishableKeys } from './publishable_key.ts';

const name = 'Demo page';

/** The publishable key of the demo's program, for pages of the service itself, wherever it listens now. */
export async function demoKey(tx: Tx, program_id: string, services: Services): Promise<{ publishable_key: string }> {
  const allowed_origins = originsOf(services.base_url);
  const known = await publishableKeys.find(
    tx,
    sql`${tenant(tx)} and t.program_id = ${program_id} and t.name = ${name} and t.revoked_at is null`,
  );
  if (known) {
    await publishableKeys.update(tx, known.id, { allowed_origins });
    return { publishable_key: known.key };
  }
  const operation = operationOf(publishableKeyOperations, 'publishable_keys.create');
  const made = await perform<PublishableKey>(
    tx,
    { operation, by: '', services },
    { body: { program_id, name, allowed_origins } },
  );
  if (made instanceof Problem) throw made;
  return { publishable_key: made.key };
}

/** The origins of the service: on loopback by both of its names. */
function originsOf(base_url: string): string[] {
  const { origin, protocol, port, hostname } = new URL(base_url);
  return hostname === '127.0.0.1' ? [origin, `${protocol}//localhost${port && `:${port}`}`] : [origin];
}

const script = `
  const say = (id, text) => { document.getElementById(id).textContent = text }
  window.Rail ||= []
  const show = () => Rail.push((rail) => rail.click().then((click) => say('click', click ?? 'none: open this page by a link of a partner')))
  show()
  document.getElementById('lead').addEventListener('submit', (event) => {
    event.preventDefault()
    Rail.push((rail) => rail.lead({ email: event.target.email.value }).then(({ recorded }) => say('recorded', recorded ? 'Recorded.' : 'Not recorded.')))
  })
  document.getElementById('forget').addEventListener('click', () => { Rail.push((rail) => rail.consent(false)); show() })`;
const style =
  'body { max-width: 34rem; margin: 4rem auto; padding: 0 1rem; font: 1.125rem/1.5 system-ui, sans-serif; color-scheme: light dark }';
const hashOf = (text: string): string => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
const policy = `default-src 'none'; script-src 'self' ${hashOf(script)}; style-src ${hashOf(style)}; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`;

export function mountDemoPage(app: FastifyInstance, services: Services): void {
  app.get('/demo', async (_, reply) => {
    const { demo_key } = services;
    if (demo_key === undefined)
      throw new Problem('route_not_found', 'GET /demo is a page of the demo that npm start runs.');
    return reply
      .headers({
        'Content-Type': 'text/html; charset=utf-8',
        'Content-Security-Policy': policy,
        'X-Robots-Tag': 'noindex',
      })
      .serializer(String)
      .send(pageWith(demo_key));
  });
}

/** Its script is loaded from the folder of the page, wherever a proxy has put it. */
const pageWith = (key: string): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Demo website</title>
<link rel="icon" href="data:,">
<style>${style}</style>
<script async src="rail.js" data-key="${key}"></script>
</head>
<body>
<main>
<h1>Demo website</h1>
<p>This page has Rail's script. <a href="?ref=ada">Open it by the link of a partner</a> with the handle <code>ada</code>, whom the tour of the README creates.</p>
<p>Your click: <output id="click"></output></p>
<form id="lead"><label>Sign up with <input type="email" name="email" required value="grace@customer.example.com"></label> <button>Sign up</button> <output id="recorded"></output></form>
<p><button id="forget" type="button">Withdraw consent</button></p>
</main>
<script>${script}</script>
</body>
</html>
`;
