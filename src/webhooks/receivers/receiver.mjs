// Receives the webhooks of Rail: RAIL_WEBHOOK_SECRET=whsec_… PORT=4000 node receiver.mjs
import { createHmac, timingSafeEqual } from 'node:crypto';
import { createServer } from 'node:http';

/** One for each endpoint, separated by commas. */
const secrets = process.env.RAIL_WEBHOOK_SECRET.split(',');
const tolerance_s = 300;
/** Ids of events that were handled. Keep them in your database, in the transaction that handles the event. */
const handled = new Set();

/** Whether `Rail-Signature: t=…,v1=…[,v1=…]` signs this body, by the clock of this machine. */
function isSigned(header, body) {
  const parts = (header ?? '').split(',').map((part) => part.split('='));
  const time = parts.find(([name]) => name === 't')?.[1] ?? '';
  if (!/^\d+$/.test(time) || Math.abs(Date.now() / 1000 - Number(time)) > tolerance_s) return false;
  return secrets.some((secret) => {
    const expected = createHmac('sha256', secret).update(`${time}.`).update(body).digest();
    return parts.some(([name, value = '']) => {
      const given = Buffer.from(name === 'v1' ? value : '', 'hex');
      return given.length === expected.length && timingSafeEqual(given, expected);
    });
  });
}

createServer(async (request, response) => {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const body = Buffer.concat(chunks); // exactly as it was sent: never parse and serialize it before it is verified
  if (!isSigned(request.headers['rail-signature'], body)) return response.writeHead(400).end();
  const event = JSON.parse(body);
  if (!handled.has(event.id)) {
    console.log(`${event.type} ${event.id}`);
    handled.add(event.id);
  }
  response.writeHead(204).end(); // within ten seconds: leave long work to a job
}).listen(Number(process.env.PORT ?? 4000), '127.0.0.1');
