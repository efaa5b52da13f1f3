import { default_rate_limit } from '../access/api_key.ts';
import { signature_tolerance_s } from '../encryption/signature.ts';
import { api_version, max_body_bytes } from '../values/api.ts';
import { type Described, rootOf } from './described.ts';
import type { DeliveryTerms } from './openapi_webhooks.ts';

/** What holds for every operation and every webhook, in Markdown: the OpenAPI description and llms-full.txt both carry it. */
export const conventions = (described: Described): { title: string; text: string }[] => [
  { title: 'How it works', text: described.guide },
  ...ofRequests(described),
  ...ofWebhooks(described),
];

const ofRequests = ({ path, test_keys }: Pick<Described, 'path' | 'test_keys'>) => [
  {
    title: 'Requests and responses',
    text: `JSON in both directions. A request with a body carries \`Content-Type: application/json\` and has at most ${max_body_bytes / 1024 / 1024} MiB. A field or query parameter that is not known is refused (\`unknown_parameter\`), never silently dropped. Times are ISO 8601; answers are in UTC. Ids are strings with a prefix that says what they name. An id of another organization, an unknown one and a deleted one answer the same: 404.

A create answers 201, work that is only queued 202, everything else 200. A deletion answers \`{id, object, deleted: true}\`. \`PATCH\` changes only what is sent. Without a key answer \`/docs\` (this in a browser), \`${path}/openapi.json\`, \`${rootOf(path)}/llms.txt\`, \`${rootOf(path)}/llms-full.txt\`, \`/healthz\` (the process is up) and \`/readyz\` (its database is too).

Every response, errors included, carries \`X-Rail-Version\`, \`X-Rail-Livemode\`, \`X-RateLimit-Limit\`, \`X-RateLimit-Remaining\`, \`X-RateLimit-Reset\` and \`Rail-Request-Id\`. Quote the request id when you ask for help; the events that a call causes carry it too.`,
  },
  {
    title: 'Authentication',
    text: `Every request carries \`Authorization: Bearer <API key>\`. Who runs the service makes keys with \`rail key create\`. A key has scopes, and each operation names the one that it needs: \`<resource>:read\` or \`<resource>:write\`, or one of its own. \`*:read\` covers every read, \`*\` everything. A missing scope is 403 \`insufficient_scope\`, and \`param\` names it.

Live keys begin with \`rail_live_\`, test keys with \`rail_test_\`. ${test_keys}

Requests may be signed: \`Rail-Signature: t=<unix seconds>,v1=<hex HMAC-SHA256>\`. The HMAC key is the full API key, and the signed string is \`<t>.<raw request body>\` (\`<t>.\` and nothing behind it where there is no body). A signature is verified whenever one is sent, and \`t\` may be ${signature_tolerance_s} seconds from the service's clock. \`POST /v1/inbound_signing\` makes signatures mandatory for the key that calls it.`,
  },
  {
    title: 'Money',
    text: `Fields that end in \`_minor\` are integers in minor units of the currency that stands in the same object (\`9900\` with \`USD\` is 99.00 dollars; \`9900\` with \`JPY\` is 9,900 yen). Rates and changes are integers in basis points: 2000 is 20 %. There is no float and no decimal string anywhere. Parse amounts as integers, and divide only to show them.`,
  },
  {
    title: 'Lists',
    text: `A list answers \`{data, has_more, total_count}\`, newest first unless its operation says otherwise. \`total_count\` counts all that match the filters, whatever the page. \`limit\` is 1 to 100, 25 when left out. For the next page pass the last object's id as \`starting_after\`, for the one before pass the first one's as \`ending_before\`; not both.

\`expand[]=<relation>\` (or \`expand=a,b\`) puts the related object under the relation's name; it needs the read scope of what it shows. If the related object is deleted, \`{id, object, deleted: true}\` takes its place. \`include[]=stats\` adds computed counters where there are some.`,
  },
  {
    title: 'Idempotency',
    text: `Any \`POST\` may carry \`Idempotency-Key\`, 1 to 255 characters. For 24 hours the same key answers the first response again, with \`Idempotent-Replayed: true\`, and nothing happens twice. The same key with another path or body is 422 \`idempotency_key_reused\`. While the first request still runs it is 409 \`idempotency_key_in_flight\`, with \`Retry-After\`. A request that failed does not pin its key. Send a key with whatever moves money, and retry after a timeout or a 5xx with the same key.`,
  },
  {
    title: 'Errors',
    text: `An error answers \`{"error": {"type", "code", "message", "param"?}, "existing"?}\`. Decide by \`code\`; show \`message\` to people: it says what is wrong and what would be right. \`param\` names the field, header or scope at fault, with dots for what is nested. A create that collides (409 \`resource_already_exists\`) carries the record that stands in its way under \`existing\`. New codes may be added: treat an unknown one by its \`type\` and status.`,
  },
  {
    title: 'Rate limit',
    text: `A key may make ${default_rate_limit} requests in each second, unless it was given another limit. \`X-RateLimit-Limit\` is the limit, \`X-RateLimit-Remaining\` what is left of this second, \`X-RateLimit-Reset\` the Unix second in which it begins anew. Beyond it: 429 \`rate_limit_exceeded\` with \`Retry-After\`.`,
  },
  {
    title: 'Versioning',
    text: `The version is ${api_version}; every response carries it in \`X-Rail-Version\`. A request may pin it with \`Rail-Version: ${api_version}\`; an unknown version is 400. Additive changes (new operations, optional parameters, fields of replies, event types, error codes) never change the version, so ignore what you do not know.`,
  },
];

const ofWebhooks = ({ path, delivery }: Pick<Described, 'path' | 'delivery'>) => {
  const {
    timeout_ms,
    waits_s,
    sweep_minutes,
    overlap_ms,
    kept_days,
    most_endpoints,
    switch_off,
    subject,
    delivery_prefix,
    postbacks,
    envelope_doc,
  } = delivery;
  return [
    {
      title: 'Webhooks',
      text: `Register an address with \`POST ${path}/webhook_endpoints\` (at most ${most_endpoints} a ${subject}), and keep the \`secret\` of the answer: it is shown this once. The endpoint then receives a signed \`POST\` for each event of its ${subject} that it chose (none chosen: all). The address must be public \`http\` or \`https\`; private, loopback, link-local and internal ones are refused when it is saved and at every send, and redirects are never followed. \`POST ${path}/webhook_endpoints/{id}/ping\` sends a test event.

The body is \`{${envelopeKeys(delivery).join(', ')}}\`; ${envelope_doc}

Headers: \`Rail-Signature\`, \`Rail-Event\` (the type), \`Rail-Event-Id\` (the body's \`id\`, the same on retries and replays), \`Rail-Delivery-Id\` (\`${delivery_prefix}_…\`, a replay has a new one), \`Rail-Attempt\` (1 to ${waits_s.length + 1}), \`Rail-Request-Id\` (where something caused the event), and the same delivery in Standard Webhooks form: \`webhook-id\`, \`webhook-timestamp\`, \`webhook-signature\`.

Answer any 2xx within ${timeout_ms / 1000} seconds, and work afterwards. Anything else, a redirect too, is a failed attempt. There are ${waits_s.length + 1} attempts: the ${waits_s.length} after the first come ${waits_s.slice(0, -1).map(duration).join(', ')} and ${duration(waits_s.at(-1) as number)} after the one before, at the earliest: retries that are due are sent at ${sweep_minutes.join(' and ')} minutes past the hour. After the last the delivery is \`failed\`, and stays in the log.

Delivery is at least once: de-duplicate on \`id\`. Events have a strict sequence, and an endpoint gets one request at a time in that sequence; a failed one is tried again later, behind what came meanwhile, so reconcile with \`created_at\` and the ids in \`data\`. An event is written in the transaction of the change that it tells of: there is none without the other.

Events and deliveries are kept ${kept_days} days: \`GET ${path}/webhook_endpoints/{id}/deliveries\` shows each attempt, and \`POST ${path}/webhook_deliveries/{id}/replay\` or \`POST ${path}/webhook_endpoints/{id}/replay\` sends again what was missed, with the same body and event id. An endpoint whose last ${switch_off.least_failures} events all failed every retry within ${switch_off.within_days} days, over ${switch_off.span_days} days or more, is switched off and the owner is emailed; enabling it, or rotating its secret, restarts the count.${postbacks ? `\n\n${postbackText(postbacks)}` : ''}`,
    },
    {
      title: 'Verifying a webhook',
      text: `1. Split \`Rail-Signature\` on commas; take \`t\` and every \`v1\`. (During the ${overlap_ms / 3_600_000} hours after a rotation of the secret there are two, the new secret's first.)
2. The signed string is \`t\`, a dot, and the raw body exactly as it was received: verify before you parse, and never serialize again.
3. Compute HMAC-SHA256 of it with the whole secret as key, \`whsec_\` included, in hex.
4. Compare with each \`v1\` in constant time. Any match is valid.
5. Refuse when \`t\` is more than ${signature_tolerance_s} seconds from your clock.

\`\`\`js
import { createHmac, timingSafeEqual } from 'node:crypto';

function verify(header, rawBody, secret) {
  const parts = (header ?? '').split(',').map((part) => part.split('='));
  const t = parts.find(([name]) => name === 't')?.[1];
  const expected = Buffer.from(createHmac('sha256', secret).update(\`\${t}.\`).update(rawBody).digest('hex'));
  const isExpected = (given) => given.length === expected.length && timingSafeEqual(given, expected);
  const valid = parts.some(([name, v1 = '']) => name === 'v1' && isExpected(Buffer.from(v1)));
  return valid && Math.abs(Date.now() / 1000 - Number(t)) <= ${signature_tolerance_s};
}
\`\`\`

A Standard Webhooks library works as well, with the secret as it is: \`webhook-signature\` holds \`v1,<base64 HMAC-SHA256 of "<webhook-id>.<webhook-timestamp>.<raw body>">\` for each secret, separated by spaces; the key is the secret without \`whsec_\`, base64-decoded.`,
    },
  ];
};

const envelopeKeys = ({ envelope }: DeliveryTerms): string[] =>
  Object.keys(envelope({ id: '', type: '', created_at: '', data: {}, request_id: null, livemode: true }));

const postbackText = ({ noun, field, families }: NonNullable<DeliveryTerms['postbacks']>): string =>
  `An endpoint with a \`${field}\` is that ${noun}'s postback: it receives that ${noun}'s own ${families} events alone, without a customer's identity.`;

/** 300 is `5 minutes`. */
function duration(seconds: number): string {
  const [count, unit] = seconds < 3600 ? [seconds / 60, 'minute'] : [seconds / 3600, 'hour'];
  return `${count} ${unit}${count === 1 ? '' : 's'}`;
}
