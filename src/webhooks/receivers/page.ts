/** `GET /docs/webhooks`: how webhooks are received and verified, with a receiver in each of five languages. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { FastifyInstance } from 'fastify';
import { block, mountDocument, prose } from '../../core/description/document.ts';

/** The language of each file. A test runs those whose language is installed, against both services. */
export const receivers = {
  'receiver.mjs': 'Node',
  'receiver.py': 'Python',
  'receiver.rb': 'Ruby',
  'receiver.php': 'PHP',
  'receiver.go': 'Go',
} as const;

const rules = [
  'Both services sign their webhooks in the same way, so one receiver serves both. Each endpoint has a secret of its own, which is shown once: when the endpoint is created, and when its secret is rotated.',
  '`Rail-Signature: t=<unix seconds>,v1=<hex>` is an HMAC-SHA256 of `<t>.<raw body>`, whose key is the whole secret, including `whsec_`. For 24 hours after a rotation the header has two `v1` values, and either may match. Compare in constant time, and reject a request whose `t` differs by more than five minutes from your clock.',
  'The same request carries `webhook-id`, `webhook-timestamp` and `webhook-signature`, which the libraries of Standard Webhooks verify. Use whichever you prefer.',
  'Respond with 2xx within ten seconds, and do long work in a background job. After any other response, Rail retries with growing delays, so an event can arrive more than once: ignore an `id` that you have already handled.',
  'An endpoint receives one request at a time, and first attempts are made in the strict sequence of the events. A retry is sent later, so an event can arrive after newer ones.',
];

export const mountReceiversPage = (app: FastifyInstance): void =>
  mountDocument(app, '/docs/webhooks', async () => ({
    title: 'Webhooks',
    summary: 'How to receive and verify webhooks.',
    content: [...rules.map((text) => `<p>${prose(text)}</p>`), ...(await examples())].join('\n'),
  }));

const examples = (): Promise<string[]> =>
  Promise.all(
    Object.entries(receivers).map(async ([file, language]) => {
      const code = await readFile(join(import.meta.dirname, file), 'utf8');
      return `<h2 id="${language.toLowerCase()}">${language}</h2>\n${block(code)}`;
    }),
  );
