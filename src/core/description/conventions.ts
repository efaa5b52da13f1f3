import { default_rate_limit } from '../access/api_key.ts';
import { signature_tolerance_s } from '../encryption/signature.ts';
import { most_of_organization } from '../postgres/reading_limit.ts';
import type { Operation } from '../resource/operation.ts';
import { api_version, default_address_rate, max_body_bytes, max_body_depth, max_body_values } from '../values/api.ts';
import { type Described, rootOf } from './described.ts';
import type { DeliveryTerms } from './openapi_webhooks.ts';

/** The conventions of every operation and every webhook, in Markdown: the OpenAPI description and llms-full.txt both carry them. */
export const conventions = (described: Described): { title: string; text: string }[] => [
  { title: 'How it works', text: described.guide },
  ...(described.chapters ?? []),
  ...ofRequests(described),
  ...ofWebhooks(described),
];

/** Describes the data that a key sees if it can choose where events are sent. */
function eventsScope(operations: Operation[]): string {
  const scope = operations.find(({ name }) => name.endsWith('webhook_endpoints.create'))?.scope;
  if (scope === undefined) return '';
  return ` A key with the scope \`${scope}\` can have all events sent to it, with the personal data in them, whatever its other scopes: give it only to who may see that. An endpoint that is created with \`personal_data: false\` receives none.`;
}

const ofRequests = ({ path, operations, test_keys, delivery, moves_money }: Described) => [
  {
    title: 'Requests and responses',
    text: `Requests and responses are JSON. A request with a body needs the header \`Content-Type: application/json\`. A body has at most ${max_body_bytes / 1024 / 1024} MiB, is nested at most ${max_body_depth} levels deep, and holds at most ${max_body_values.toLocaleString('en')} values. An unknown field or query parameter is refused with \`unknown_parameter\`.

Times are in ISO 8601; responses use UTC. Ids are strings whose prefix names the type of the object. An id that is unknown, deleted, or that of another organization's object answers 404.

Free-form objects, such as \`metadata\`, are returned as you sent them. Integers beyond ±${Number.MAX_SAFE_INTEGER.toLocaleString('en')} (2^53 − 1) are not exact in JSON and are refused: send them as strings. A sum in a report or in \`stats\` that would be beyond them is shown as that bound.

Status codes of success: 201 for a created object, 202 for work that is queued, 200 for everything else. A deletion returns \`{id, object, deleted: true}\`. \`PATCH\` changes only the fields that you send. In all other requests, null or a blank text in an optional field that cannot hold it counts as left out.

Every response, errors included, has the headers \`X-Rail-Version\`, \`X-Rail-Livemode\`, \`X-RateLimit-Limit\`, \`X-RateLimit-Remaining\`, \`X-RateLimit-Reset\` and \`Rail-Request-Id\`, besides \`Cache-Control: no-store\` and \`X-Content-Type-Options: nosniff\`; where the service is reached by https, also \`Strict-Transport-Security\`. Include the request id when you ask for help.${delivery.names_requests ? ' Events that a request causes carry the same id.' : ''}

These need no API key: \`/docs\` (this description in a browser), \`${path}/openapi.json\`, \`${rootOf(path)}/llms.txt\`, \`${rootOf(path)}/llms-full.txt\`, \`/healthz\` (the process is running) and \`/readyz\` (its database is ready).`,
  },
  {
    title: 'Authentication',
    text: `Send your API key with every request: \`Authorization: Bearer <API key>\`. The operator of the service creates keys with \`npx --no rail key create\`; a key with the scope \`keys:write\` creates others with \`POST /v1/api_keys\`. A key has scopes, and each operation states the scope that it requires, usually \`<resource>:read\` or \`<resource>:write\`. The scope \`*:read\` includes all read scopes, and \`*\` includes all scopes. If a scope is missing, the response is 403 \`insufficient_scope\`, and \`param\` names the scope. A key can expire (401 \`expired_api_key\`), and be bound to networks (403 \`ip_not_allowed\`).${eventsScope(operations)}

Live keys begin with \`rail_live_\`, test keys with \`rail_test_\`. ${test_keys}

**Signed requests.** You can sign requests: \`Rail-Signature: t=<unix seconds>,v1=<hex HMAC-SHA256>\`. The HMAC key is the full API key, and the signed string is \`<t>.<raw request body>\`; without a body it is \`<t>.\`. The service verifies every signature that it receives, and refuses one whose \`t\` is more than ${signature_tolerance_s} seconds from its clock. \`POST /v1/inbound_signing\` makes signatures mandatory for the key that sends the request.

A signature proves that the sender has the key and that the body is unchanged. It does not cover the method, the path, the query or other headers, and it does not prevent replays: whoever captures a signed request can send it again for ${signature_tolerance_s / 60} minutes. The key itself is sent with the request, so whoever can read the request can sign another one: a signature protects from nothing that TLS does not. Use TLS. An \`Idempotency-Key\` makes an unintended repetition of a \`POST\` harmless.`,
  },
  {
    title: 'Money',
    text: `Fields that end in \`_minor\` are integers in minor units of the \`currency\` of the same object: \`9900\` is 99.00 in \`USD\`, and 9,900 in \`JPY\`. Rates are integers in basis points: \`2000\` is 20 %. Amounts are never decimals or strings. Parse them as integers, and divide only to display them.`,
  },
  {
    title: 'Lists',
    text: `A list returns \`{data, has_more, total_count}\`, newest first unless the operation states another order. \`total_count\` counts all objects that match the filters, on all pages. \`limit\` is 1 to 100 and defaults to 25. For the next page, send the id of the last object as \`starting_after\`. For the previous page, send the id of the first object as \`ending_before\`. Do not send both.

\`expand[]=<relation>\` (or \`expand=a,b\`) includes related objects in the response, and requires their read scopes. If the related object is deleted, \`{id, object, deleted: true}\` takes its place. \`include[]=stats\` adds computed figures, where the operation offers them.

**CSV and NDJSON.** \`format=csv\` or \`format=ndjson\` (or the header \`Accept: text/csv\` or \`Accept: application/x-ndjson\`) returns all objects that match the filters, of any number, in one streamed response. \`limit\` and cursors cannot be combined with it. NDJSON has one object per line, as the JSON list has it, with \`expand\` and \`include\`. CSV follows RFC 4180, in UTF-8: the columns are the fields of the object in their documented order, objects and lists in a field are JSON, null is an empty field and an empty text is \`""\`; \`include[]=stats\` adds columns, and \`expand\` is refused. A text that a spreadsheet would run as a formula has an apostrophe in front of it; an import takes it away again; NDJSON returns every value as it is. \`bom=true\` puts a byte order mark at the beginning of CSV, by which Excel reads letters such as \`ü\`.

If the service fails in the middle, it breaks the connection, and your HTTP client reports an incomplete response: discard what arrived. The service also closes the connection to a reader that pauses for 30 seconds, or takes less than 256 KiB per second on average. An organization can read two such responses at once (429 \`rate_limit_exceeded\`).`,
  },
  {
    title: 'Idempotency',
    text: `Send an \`Idempotency-Key\` of 1 to 255 characters with a \`POST\` to make it safe to retry. For 24 hours, a request with the same key, path and body returns the first response, with the header \`Idempotent-Replayed: true\`, and has no further effect. The same key with another path, body or API key is refused with 422 \`idempotency_key_reused\`. While the first request is still running, the response is 409 \`idempotency_key_in_flight\` with \`Retry-After\`. A request that failed does not use up its key.${moves_money ? '\n\nSend a key with every request that moves money, and retry with the same key.' : ''}`,
  },
  {
    title: 'Errors',
    text: `An error returns \`{"error": {"type", "code", "message", "param"?}, "existing"?}\`. Handle errors by their \`code\`. \`message\` is for people: it says what is wrong and what to do. \`param\` names the field, header or scope at fault; nested fields are separated by dots. If an object with the same value exists (409 \`resource_already_exists\`), \`existing\` holds that object. New codes may be added: handle an unknown code by its \`type\` and status.

Which requests to retry:

| Response | Retry? |
|---|---|
| No response: a timeout or a broken connection | Yes, a \`POST\` with the same \`Idempotency-Key\` |
| 429, 500, 503 and 409 \`idempotency_key_in_flight\` | Yes, after the seconds in \`Retry-After\`, or with increasing delays; a \`POST\` with the same \`Idempotency-Key\` |
| 401 \`signature_expired\` | Yes, with a new signature |
| Other 409 | Not until the state that \`message\` names has changed |
| Every other 4xx, and 501 | No. The same request gets the same answer: correct it first |`,
  },
  {
    title: 'Rate limit',
    text: `A key can make ${default_rate_limit} requests per second, unless it was created with another limit. \`X-RateLimit-Limit\` is the limit, \`X-RateLimit-Remaining\` the number of requests left in this second, and \`X-RateLimit-Reset\` the Unix time at which the next second begins. Above the limit, the response is 429 \`rate_limit_exceeded\` with \`Retry-After\`.

Requests without a valid API key are limited by the public address that they come from (in IPv6 by its /64): ${default_address_rate} per second, unless the operator of the service has set another limit. The response above it is the same 429. Send your key with every request.

An organization can run ${most_of_organization} reports at once. Others wait for their turn, for some seconds at most; then the response is the same 429.`,
  },
  {
    title: 'Versioning',
    text: `The version of the API is ${api_version}. Every response carries it in \`X-Rail-Version\`. To pin it, send \`Rail-Version: ${api_version}\`; an unknown version is refused with a 400. The version does not change for additions: new operations, optional parameters, response fields, event types and error codes. Ignore what you do not know.`,
  },
];

const ofWebhooks = ({ path, delivery }: Pick<Described, 'path' | 'delivery'>) => {
  const { timeout_ms, waits_s, overlap_ms, kept_days, most_endpoints, most_postbacks, switch_off } = delivery;
  const { subject, delivery_prefix, postbacks, envelope_doc, https_only, names_requests, lists_all } = delivery;
  return [
    {
      title: 'Webhooks',
      text: `Register an endpoint with \`POST ${path}/webhook_endpoints\` (at most ${most_endpoints} per ${subject}${postbacks ? `, and ${most_postbacks} postbacks of each ${postbacks.noun}` : ''}), and store the \`secret\` of the response: it is shown only once. The endpoint then receives a signed \`POST\` for each event of its ${subject} whose type is in \`event_types\`; an empty list means all types. The URL must be a public ${https_only ? '`https`' : '`http` or `https`'} address: private, loopback, link-local and internal addresses are refused when you save the endpoint and at every delivery. Redirects are not followed. \`POST ${path}/webhook_endpoints/{id}/ping\` sends a test event. To keep personal data from a receiver, create its endpoint with \`personal_data: false\`: the fields with personal data are null there, in retries, replays and test events too, and email addresses in texts and URLs are \`hidden\`.

**Body.** \`{${envelopeKeys(delivery).join(', ')}}\`. ${envelope_doc}

**Headers.** \`Rail-Signature\`, \`Rail-Event\` (the type), \`Rail-Event-Id\` (the \`id\` of the body, the same on retries and replays), \`Rail-Delivery-Id\` (\`${delivery_prefix}_…\`, new for each replay)${names_requests ? ',' : ' and'} \`Rail-Attempt\` (1 to ${waits_s.length + 1})${names_requests ? ' and `Rail-Request-Id` (if a request or a scheduled run caused the event)' : ''}. The Standard Webhooks headers are sent too: \`webhook-id\`, \`webhook-timestamp\` and \`webhook-signature\`.

**Responses.** Answer any 2xx within ${timeout_ms / 1000} seconds, and process the event afterwards. The status line acknowledges the delivery, however slow the body is that follows. Any other response, including a redirect, is a failed attempt. A delivery has up to ${waits_s.length + 1} attempts. The ${waits_s.length} retries come at least ${waits_s.slice(0, -1).map(duration).join(', ')} and ${duration(waits_s.at(-1) as number)} after the one before; retries that are due are sent ${retryTimes(delivery)}. If the last attempt fails, the delivery is \`failed\` and stays in the log.

**Order.** Events have a strict sequence${lists_all ? `, which is the order of \`GET ${path}/events\`` : ''}. An endpoint receives one request at a time, and first attempts are made in that sequence. A failed attempt does not hold up the events after it: its retry is sent later, after the events that were sent meanwhile. An event can therefore arrive after newer ones. Compare \`created_at\`, or read the object by the ids in \`data\`, before you overwrite newer state.

**Duplicates.** Delivery is at least once: ignore an \`id\` that you have already processed. An event is written in the same transaction as the change that it reports, so there is no change without its event and no event without its change.

**Log and replays.** Events and deliveries are kept ${kept_days} days. \`GET ${path}/webhook_endpoints/{id}/deliveries\` lists the ${lastOf(delivery)}deliveries with each attempt: its URL, every header that was sent, and the response. \`POST ${path}/webhook_deliveries/{id}/replay\` ${lists_all ? `and \`POST ${path}/webhook_endpoints/{id}/replay\` send events again` : 'sends a delivery again, up to that age'}, with the same body and event id. An endpoint whose last ${switch_off.least_failures} events all failed every retry within ${switch_off.within_days} days, over ${switch_off.span_days} days or more, is disabled, and the owner is notified by email. Enabling it, or rotating its secret, restarts the count.${postbacks ? `\n\n${postbackText(postbacks)}` : ''}`,
    },
    {
      title: 'Verifying a webhook',
      text: `1. Split \`Rail-Signature\` on commas. Take \`t\` and every \`v1\`. (During the ${overlap_ms / 3_600_000} hours after a rotation of the secret there are two: that of the new secret comes first.)
2. The signed string is \`t\`, a dot, and the raw body exactly as you received it. Verify before you parse: JSON that was parsed and serialized again can differ.
3. Compute its HMAC-SHA256 in hex. The HMAC key is the whole secret, including \`whsec_\`.
4. Compare the result with each \`v1\` in constant time. The signature is valid if one of them matches.
5. Refuse the request if \`t\` is more than ${signature_tolerance_s} seconds from your clock. Within that time, whoever captures a delivery can send it again: ignore an \`id\` that you have already processed.

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

You can also use a Standard Webhooks library with the same secret. \`webhook-signature\` holds \`v1,<base64 HMAC-SHA256 of "<webhook-id>.<webhook-timestamp>.<raw body>">\` for each secret, separated by spaces. The HMAC key is the secret without \`whsec_\`, base64-decoded.`,
    },
  ];
};

const retryTimes = ({ sweep_minutes }: DeliveryTerms): string =>
  sweep_minutes.length > 0 ? `at ${sweep_minutes.join(' and ')} minutes past the hour` : 'within a minute of being due';

const lastOf = ({ most_in_log }: DeliveryTerms): string => (most_in_log === null ? '' : `last ${most_in_log} `);

const envelopeKeys = ({ envelope }: DeliveryTerms): string[] =>
  Object.keys(envelope({ id: '', type: '', created_at: '', data: {}, request_id: null, livemode: true }));

const postbackText = ({ noun, field, families }: NonNullable<DeliveryTerms['postbacks']>): string =>
  `**Postbacks.** An endpoint with a \`${field}\` is the postback of that ${noun}. It receives only the ${noun}'s own ${families} events, without the customer's identity.`;

/** 300 is `5 minutes`. */
function duration(seconds: number): string {
  const [count, unit] = seconds < 3600 ? [seconds / 60, 'minute'] : [seconds / 3600, 'hour'];
  return `${count} ${unit}${count === 1 ? '' : 's'}`;
}
