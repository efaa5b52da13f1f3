/** How the parts of the recruitment service work together: the description begins with it. */
export const guide = `The recruitment service finds prospective affiliates, writes to them, and hands agreed partners to the affiliate program service. It tells your systems by **events** what happens.

1. Register a **webhook endpoint** (\`POST /recruitment/v1/webhook_endpoints\`). Its \`type\` is \`live\`, or \`test\` for the events of tests alone.
2. Send it a **test event** of any type: \`POST /recruitment/v1/webhook_endpoints/{id}/ping\` with \`event_type\`.
3. To post into a **team chat**, register the address of an incoming webhook of Slack, Discord or Microsoft Teams with the \`type\` \`slack\`, \`discord\` or \`teams\`. The address is kept as a secret: responses show its host and its last 4 characters. Each event becomes a short message, with the same retries and the same switch-off. These requests are not signed, and if the tool answers 429 with \`Retry-After\`, the next attempt waits at least as long.

**Plan.** \`GET /recruitment/v1/plan\` shows what the organization may do; the operator of the service sets the plan (\`rail org plan\`). Webhooks are included in the plans grow and enterprise: on starter, creating, enabling and testing endpoints and replaying deliveries answer 402 \`feature_not_in_plan\`. Endpoints stay when the plan no longer includes them, and receive nothing that happens after the change. Searches, scans that are asked for by hand and reveals cost a credit each; \`GET /recruitment/v1/credits\` is the ledger.

No event holds an email address, the text of an email, a search text or the terms of a deal: it holds ids, which you read via the API.`;

export const test_keys =
  'A test key can create webhook endpoints (always of the type `test`), send them test events, read their deliveries, disable and enable them, rotate their secrets and delete them. A live endpoint is a 404 to it, and everything else is refused with 403 `test_key_not_allowed`.';
