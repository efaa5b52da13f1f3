import { commission_states } from './commissions/commission_state.ts';

const commission_statuses = Object.entries(commission_states)
  .map(([status, { doc }]) => `\`${status}\` (${doc})`)
  .join(', ');

/** How the parts of the program service work together: the description begins with it. */
export const guide = `1. A **program** (\`POST /v1/programs\`) holds the settings. Its **rules** (\`POST /v1/rules\`) set what a sale earns; without a rule, no sale earns a commission.
2. A **partner** joins: you add one (\`POST /v1/partners\`), or somebody applies (\`POST /v1/applications\`, or a partner with the status \`pending\`) and you decide (\`POST /v1/applications/{id}/approve\` or \`/reject\`).
3. A **link** (\`POST /v1/links\`) is a page of your site with the partner's value in its query, as \`?ref=ada\`; the partner's handle works on any page without a link. When a visitor arrives with one, your site sends \`POST /v1/clicks\` and keeps the id of the **click** with the visitor. The \`short_url\` of a link records the click itself and redirects to the page with the visitor's own query and the id of the click, as \`?ref=ada&rail_click=clk_…\`: your site keeps that id instead of sending \`POST /v1/clicks\`, and sends it as \`click_id\` with \`POST /v1/customers\` when the visitor signs up. Where no click was recorded, there is no \`rail_click\`. A job creates the **referral** from the click: which partner is credited, and until when.
4. Somebody signs up: \`POST /v1/customers\` with the \`click_id\`. The **customer** stays with the partner.
5. The customer pays: \`POST /v1/sales\` with the processor's charge, once for each charge, renewals too. The answer holds the **commission**, or a warning that says why there is none. A **coupon** (\`POST /v1/coupons\`) credits the first sale to its partner without a click, by its \`external_id\`. If a charge came with a customer and a coupon, send both: \`external_customer_id\` (or \`customer_id\`) says who paid, \`customer\` has the details, \`coupon_external_id\` the coupon that was used, and \`click_id\` the click if you have it. On the first sale the coupon decides who is credited, later the partner of the customer.
6. Refunds go to \`POST /v1/sales/{id}/refund\` (\`GET /v1/refunds\` lists them), corrections to \`PATCH /v1/sales/{id}\`: the commissions are adjusted automatically.
7. A commission has one of these statuses: ${commission_statuses}. \`POST /v1/commissions\` creates a bonus.
8. What is due is paid in **payouts** (\`POST /v1/payout_batches\`): see *Paying partners*.
9. Suspected fraud raises a **risk flag**, which a person closes (\`POST /v1/risk_flags/{id}/resolve\`).
10. Each step emits an **event**: register a webhook endpoint to receive them, instead of polling. [Webhooks](docs/webhooks) has a receiver in Node, Python, Ruby, PHP and Go.

**Payout rails.** Set the credentials that a program pays partners with by \`PUT /v1/programs/{id}/rails/{rail}\`: they are tried at the provider first, then encrypted. \`webhook_url\` of the rail is where the provider reports what became of payouts: the address of this service, followed by \`/rails/{rail}/{program_id}\`. It takes no API key, because the provider signs its requests, and each request only makes Rail look up the payouts that it names. Without it, Rail asks at growing intervals.

- **PayPal**: in the developer dashboard, under Apps & Credentials, open your app, add a webhook with the URL and the event types of payouts (\`PAYMENT.PAYOUTSBATCH.*\`, \`PAYMENT.PAYOUTS-ITEM.*\`), and set its id as \`webhook_id\`.
- **Wise**: in the settings of your account, under Webhooks, add the URL for transfer updates (\`transfers#state-change\`). Nothing else is to be set: Wise signs with a key that Rail knows.
- **Stripe**: in the dashboard, under Webhooks, add an endpoint with the URL and the events \`transfer.created\`, \`transfer.updated\` and \`transfer.reversed\`, and set its signing secret as \`webhook_secret\`.

**Reports and data.** \`GET /v1/reports\` says what happened in a window of time, by partner, link, country and so on. \`GET /v1/exports/{resource}\` exports what changed, for a warehouse. Data teams query documented views (schema \`data\`) in Postgres with a login of their own, or by \`POST /graphql\`: see [Data](docs/data).

**Which refusals count as success.** 409 \`resource_already_exists\` for a charge or a refund, and 409 \`sale_already_refunded\`, mean that it is recorded already. \`self_referral\` and \`click_expired\` decide a sign-up: do not send it again, and send the customer's sales as usual.`;
