/** How the parts of the program service play together: the description begins with it. */
export const guide = `1. A **program** (\`POST /v1/programs\`) holds the settings. Its **rules** (\`POST /v1/rules\`) say what a sale earns; without one nobody earns anything.
2. A **partner** joins: you add one (\`POST /v1/partners\`), or somebody applies (\`POST /v1/applications\`, or a partner with the status \`pending\`) and you decide (\`POST /v1/applications/{id}/approve\` or \`/reject\`).
3. A **link** (\`POST /v1/links\`) is a page of yours with the partner's value in its query, as \`?ref=ada\`; the handle alone works on any page. When a visitor arrives with one, your site sends \`POST /v1/clicks\` and keeps the id of the **click** with the visitor. Its \`short_url\` records the click by itself and leads on. A job makes the **referral** of the click: who is credited, and until when.
4. Somebody signs up: \`POST /v1/customers\` with the \`click_id\`. The **customer** stays with the partner.
5. The customer pays: \`POST /v1/sales\` with the processor's charge, once for each charge, renewals too. The answer holds the **commission**, or a warning that says why there is none. A **coupon** (\`POST /v1/coupons\`) brings the first sale to its partner without a click, by its \`external_id\`.
6. Refunds go to \`POST /v1/sales/{id}/refund\`, corrections to \`PATCH /v1/sales/{id}\`: the commissions follow by themselves.
7. A commission is \`pending\` through the holding period, or \`approved\` when you say so, then \`due\`, and \`paid\` when its payout has settled. \`POST /v1/commissions\` gives a bonus.
8. What looks like fraud raises a **risk flag**, which a person closes (\`POST /v1/risk_flags/{id}/resolve\`).
9. Each step tells an **event**: register a webhook endpoint, and nothing has to be polled.`;
