/** How the parts of the recruitment service work together: the description begins with it. */
export const guide = `The recruitment service finds prospective affiliates, writes to them, and hands agreed partners to the affiliate program service. It tells your systems by **events** what happens.

1. Register a **webhook endpoint** (\`POST /recruitment/v1/webhook_endpoints\`). Its \`type\` is \`live\`, or \`test\` for the events of tests alone.
2. Send it a **test event** of any type: \`POST /recruitment/v1/webhook_endpoints/{id}/ping\` with \`event_type\`.
3. To post into a **team chat**, register the address of an incoming webhook of Slack, Discord or Microsoft Teams with the \`type\` \`slack\`, \`discord\` or \`teams\`. The address is kept as a secret: responses show its host and its last 4 characters. Each event becomes a short message, with the same retries and the same switch-off. These requests are not signed, and if the tool answers 429 with \`Retry-After\`, the next attempt waits at least as long.

**Prospects.** Create a **brand** (\`POST /recruitment/v1/brands\`) and add **prospects** to it (\`POST /recruitment/v1/prospects\`): a website, a channel or a person, once in each channel of a brand. Save them to **lists**, hide them, move them through the **stages** of the pipeline, assign them to a team member, note what you know; \`GET /recruitment/v1/prospects/{id}/activity\` shows what happened and who did it. A key that belongs to a user acts as that person; any other key is the API, and events name nobody. \`POST /recruitment/v1/prospects/import\` adds up to 100,000 from a CSV or NDJSON file.

**Addresses.** The email addresses of a prospect are stored encrypted and are read from \`GET /recruitment/v1/prospects/{id}/emails\` alone. Those that were found and not used are deleted after 30 days, and prospects who were never contacted are erased after the \`retention_days\` of their brand.

**Do not contact.** A prospect, an address or a domain can be barred from all outreach (\`POST /recruitment/v1/prospects/{id}/do_not_contact\`, \`POST /recruitment/v1/do_not_contact\`). An address stays barred when its prospect is erased, also if it is added or imported again. Unsubscribes and complaints cannot be lifted. \`GET /recruitment/v1/prospects/{id}/export\` and \`DELETE /recruitment/v1/prospects/{id}\` answer people who ask what you store about them, or to be forgotten.

**Samples.** Every organization has 12 sample prospects, \`sample_fdi_01\` to \`sample_fdi_12\` (\`GET /recruitment/v1/sample_prospects\`), to try this with. They are in no list of prospects and never count. They can be retrieved, saved, hidden, moved and noted, with live and test keys; each sends a real event with \`livemode\` false to test endpoints only. Anything else answers 409 \`sample_prospect\`.

**Searches and scans.** Creating a brand starts its first scan: it looks at the website, asks search providers for the brand's keywords and competitors, and visits what they found. \`POST /recruitment/v1/searches\` starts a search; the scan behind it visits its results. Evidence and score of each prospect come from these visits, which obey robots.txt and ask a host once a second. \`GET /recruitment/v1/search_providers\` lists the providers; set your own credentials with \`PUT\`. The price of a page is reserved before it is asked for: neither the ceiling of a search nor that of the plan is ever passed. \`POST /recruitment/v1/prospects/{id}/reveal\` looks for the email addresses of a prospect.

**Plan.** \`GET /recruitment/v1/plan\` shows what the organization may do; the operator of the service sets the plan (\`rail org plan\`). Webhooks are included in the plans grow and enterprise: on starter, creating, enabling and testing endpoints and replaying deliveries answer 402 \`feature_not_in_plan\`. Endpoints stay when the plan no longer includes them, and receive nothing that happens after the change. Searches, scans that are asked for by hand and reveals cost a credit each; \`GET /recruitment/v1/credits\` is the ledger.

No event holds an email address, the text of an email, a search text or the terms of a deal: it holds ids, which you read via the API.`;

export const test_keys =
  'A test key can create webhook endpoints (always of the type `test`), send them test events, read their deliveries, disable and enable them, rotate their secrets and delete them. It can list the 12 sample prospects, retrieve, save, hide, move and note them. A live endpoint is a 404 to it, and everything else is refused with 403 `test_key_not_allowed`.';
