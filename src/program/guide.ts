import { commission_states } from './commissions/commission_state.ts';
import { reason_texts } from './payouts/eligibility.ts';
import { payout_states } from './payouts/payout_state.ts';
import { payout_error_codes } from './payouts/rails/rail.ts';

const commission_statuses = Object.entries(commission_states)
  .map(([status, { doc }]) => `\`${status}\` (${doc})`)
  .join(', ');

/** The introduction of the API description: explains how the parts of the program service work together. */
export const guide = `1. A **program** (\`POST /v1/programs\`) holds the settings. Its **rules** (\`POST /v1/rules\`) set what a sale earns; without a rule, no sale earns a commission.
2. A **partner** joins: you add one (\`POST /v1/partners\`), or somebody applies (\`POST /v1/applications\`, or a partner with the status \`pending\`) and you decide (\`POST /v1/applications/{id}/approve\` or \`/reject\`).
3. A **link** (\`POST /v1/links\`) is a page of your site with the partner's value in its query, as \`?ref=ada\`; the partner's handle works on any page without a link. When a visitor arrives with one, your site sends \`POST /v1/clicks\` and keeps the id of the **click** with the visitor. The \`short_url\` of a link records the click itself and redirects to the page with the visitor's own query and the id of the click, as \`?ref=ada&rail_click=clk_…\`: your site keeps that id instead of sending \`POST /v1/clicks\`, and sends it as \`click_id\` with \`POST /v1/customers\` when the visitor signs up. Where no click was recorded, there is no \`rail_click\`. A job creates the **referral** from the click: which partner is credited, and until when.
4. Somebody signs up: \`POST /v1/customers\` with the \`click_id\`. The **customer** stays with the partner.
5. The customer pays: \`POST /v1/sales\` with the processor's charge, once for each charge, renewals too; many at once by \`POST /v1/sales/bulk\`. They may come in any order: a sale with an \`occurred_at\` is credited and paid as of that time, and later sales of the customer are corrected, but what is paid, approved or on hold stays. The answer holds the **commission**, or a warning that says why there is none. A **coupon** (\`POST /v1/coupons\`) credits the first sale to its partner without a click, by its \`external_id\`. If a charge came with a customer and a coupon, send both: \`external_customer_id\` (or \`customer_id\`) says who paid, \`customer\` has the details, \`coupon_external_id\` the coupon that was used, and \`click_id\` the click if you have it. On the first sale the coupon decides who is credited, later the partner of the customer.
6. Refunds go to \`POST /v1/sales/{id}/refund\` (\`GET /v1/refunds\` lists them), corrections to \`PATCH /v1/sales/{id}\`: the commissions are adjusted automatically. A refund that failed is reversed by \`POST /v1/refunds/{id}/reverse\`. When a customer disputes a charge at their bank, \`POST /v1/disputes\` puts its unpaid commissions on hold, and \`POST /v1/disputes/{id}/close\` with the bank's decision releases them (\`won\`) or refunds the sale (\`lost\`).
7. A commission has one of these statuses: ${commission_statuses}. \`POST /v1/commissions\` creates a bonus.
8. What is due is paid in **payouts** (\`POST /v1/payout_batches\`): see *Paying partners*.
9. \`GET /v1/sales/{id}/explanation\` says why a sale is credited and paid as it is. A partner who misses one makes a **claim** (\`POST /v1/sale_claims\`): the answer says what is known of the sale, and you accept or reject it (\`POST /v1/sale_claims/{id}/resolve\`).
10. Suspected fraud raises a **risk flag**, which a person closes (\`POST /v1/risk_flags/{id}/resolve\`).
11. Each step emits an **event**: register a webhook endpoint to receive them, instead of polling. [Webhooks](docs/webhooks) has a receiver in Node, Python, Ruby, PHP and Go.

**Billing processors.** Instead of sending sales, refunds and disputes yourself, connect Stripe, Paddle or Chargebee: \`PUT /v1/programs/{id}/processors/{name}\` tries the credentials, and says where the webhooks go. Put the id of the click into the checkout, as that operation describes, so that payments are credited to a partner. \`GET /v1/processor_events\` shows what came in and what became of it.

**Payout rails.** Set the credentials that a program pays partners with by \`PUT /v1/programs/{id}/rails/{rail}\`: they are tried at the provider first, then encrypted. \`webhook_url\` of the rail is where the provider reports what became of payouts: the address of this service, followed by \`/rails/{rail}/{program_id}\`. It takes no API key, because the provider signs its requests, and each request only makes Rail look up the payouts that it names. Without it, Rail asks at growing intervals.

- **PayPal**: in the developer dashboard, under Apps & Credentials, open your app, add a webhook with the URL and the event types of payouts (\`PAYMENT.PAYOUTSBATCH.*\`, \`PAYMENT.PAYOUTS-ITEM.*\`), and set its id as \`webhook_id\`.
- **Wise**: in the settings of your account, under Webhooks, add the URL for transfer updates (\`transfers#state-change\`). Nothing else is to be set: Wise signs with a key that Rail knows.
- **Stripe**: in the dashboard, under Webhooks, add an endpoint with the URL and the events \`transfer.created\`, \`transfer.updated\` and \`transfer.reversed\`, and set its signing secret as \`webhook_secret\`.

**Reports and data.** \`GET /v1/reports\` says what happened in a window of time, by partner, link, country and so on. \`GET /v1/exports/{resource}\` exports what changed, for a warehouse. Data teams query documented views (schema \`data\`) in Postgres with a login of their own, or by \`POST /graphql\`: see [Data](docs/data).

**Which refusals count as success.** 409 \`resource_already_exists\` for a charge or a refund, and 409 \`sale_already_refunded\`, mean that it is recorded already. \`self_referral\` and \`click_expired\` decide a sign-up: do not send it again, and send the customer's sales as usual.`;

const rows = (entries: [string, string][]): string =>
  entries.map(([name, meaning]) => `| \`${name}\` | ${meaning} |`).join('\n');

const reasons = rows(Object.entries(reason_texts));
const statuses = rows(Object.entries(payout_states).map(([status, { doc }]) => [status, doc]));

const remedies: Record<(typeof payout_error_codes)[number], string> = {
  recipient_invalid:
    'The account does not exist, or the name does not fit it. Ask the partner to correct the payout method, then retry.',
  recipient_unclaimed:
    'The recipient did not accept the payment in time. Ask the partner to open an account at the provider, then retry.',
  account_closed: 'The account is closed or locked. Ask the partner for another payout method, then retry.',
  returned: 'The payment came back after it was paid. Ask the partner to check the payout method, then retry.',
  compliance_hold: 'The provider or bank refuses the payment for legal reasons. Ask it what it needs.',
  limit_exceeded: 'A limit at the provider or bank is reached. Raise it there, or retry later.',
  insufficient_funds: 'Your account at the provider or bank has too little money. Add funds, then retry.',
  currency_not_supported:
    'The account cannot receive the currency. Ask the partner for another payout method, then retry.',
  provider_rejected: 'The provider or bank rejected the payment for another reason: `error_message` has it.',
  provider_unavailable: 'The provider could not take the payment. Retry later.',
};
const error_codes = rows(payout_error_codes.map((code) => [code, remedies[code]]));

/** The chapter of the description about paying partners. The test runs its examples. */
export const paying_partners = `You pay partners in four steps: set up a rail, create a batch, send its payouts, and record what the bank reports. Amounts never cross currencies: a partner who earned in EUR and USD has a payout in each.

In the examples, \`$RAIL\` is the address of the service, \`$KEY\` an API key with the scopes \`payouts:write\` and \`payouts:send\`, and \`$PROGRAM\` the id of a program.

**Set up.** The program's \`payout_methods\` are those that partners can choose from, and \`PUT /v1/partners/{id}/payout_method\` sets a partner's. Before you send, set the credentials of each rail: \`PUT /v1/programs/{id}/rails/{rail}\`. The credentials of \`bank_transfer\` and \`wire\` are the account that pays; \`crypto\` has none. \`payouts:write\` creates batches; only \`payouts:send\` moves money, sees account numbers, or changes whether payouts are approved, sent automatically and limited.

\`\`\`sh
curl -sS -X PUT "$RAIL/v1/programs/$PROGRAM/rails/bank_transfer" -H "Authorization: Bearer $KEY" -H 'Content-Type: application/json' \\
  -d '{"mode": "live", "credentials": {"name": "Acme GmbH", "iban": "DE89370400440532013000", "bic": "COBADEFFXXX"}}'
\`\`\`

**Preview a batch.** A batch takes, per partner and currency, every commission that is \`due\`, is in no payout yet, and has a \`mature_at\` before the \`cutoff\`. It also takes every clawback that no payout holds yet, whenever it matures. \`preview: true\` answers 200 with who would be paid, and who would not and why. Nothing is created.

\`\`\`sh
curl -sS "$RAIL/v1/payout_batches" -H "Authorization: Bearer $KEY" -H 'Content-Type: application/json' \\
  -d '{"program_id": "'$PROGRAM'", "preview": true}'
\`\`\`

**Who is not paid.** A balance of 0 waits silently. A balance that is not paid emits \`payout.not_eligible\` once per batch, and its commissions wait for the next one. The checks run in this order, and the first that applies is the \`reason\`:

| reason | meaning |
|---|---|
${reasons}

The minimum is the partner's \`min_payout_minor\`, or else the program's. It applies to the program's currency; other currencies have a minimum in \`min_payouts\`, or none.

**Create a batch.** Without \`preview\`, the response is 202: a worker creates the payouts, and \`progress\` of the batch shows how far it is. Each payout emits \`payout.created\`, and \`payout.due\` when its \`due_at\` comes. On the first day of each month, the service creates a batch for every active program that owes somebody money, with the beginning of the month as its cut-off. Batches at the same time never take the same commission. A commission in a payout stays \`due\` and is locked: changing it answers 409 \`commission_locked\`.

\`\`\`sh
BATCH=$(curl -sS "$RAIL/v1/payout_batches" -H "Authorization: Bearer $KEY" -H 'Content-Type: application/json' \\
  -d '{"program_id": "'$PROGRAM'"}' | sed 's/.*"id":"\\(batch_[a-z0-9]*\\)".*/\\1/')
curl -sS "$RAIL/v1/payout_batches/$BATCH" -H "Authorization: Bearer $KEY"
\`\`\`

**Approve it.** If the program sets \`payout_approval_required\`, the batch waits as \`awaiting_approval\`. \`POST /v1/payout_batches/{id}/approve\` needs a key of a user other than the one whose key created the batch (403 \`approval_not_allowed\`); the operator creates such keys with \`rail key create --user\`. A batch that the schedule, the command line or a key of no user created can be approved by any user: no key can both create and approve a batch. After approval, amounts can only shrink. If a partner's payout method is changed after the batch was created, the payout stays pending: delete it, and the next batch includes its commissions. To refuse a batch, delete it: its commissions are due again.

**Send the payouts.** \`POST /v1/payout_batches/{id}/send\` sends all pending payouts of a batch, \`POST /v1/payouts/{id}/send\` sends one. If the program sets \`auto_payouts_enabled\`, payouts are sent when they are due. The payout method, the tax form and the status of the partner are checked again: a payout that cannot be sent stays pending, and \`not_sent\` of the batch counts such payouts by reason. If the program has no credentials for any of the methods, the response is 409.

- \`paypal\`, \`wise\`, \`stripe\`: a worker asks the provider to pay and then asks for the outcome, or learns of it by the provider's webhooks. PayPal pays when the recipient accepts the payment. Wise may need you to approve the transfer at Wise. Stripe pays to the partner's Stripe balance, not to their bank.
- \`bank_transfer\`, \`wire\`: the payouts go into a payment file (ISO 20022 pain.001), which \`GET /v1/payout_batches/{id}/export\` returns. Upload it to your bank. The file never changes, and neither does its message id, so banks recognize a second upload: their report then rejects a duplicate, which changes nothing here.
- \`crypto\`: the payouts go into a CSV file. Pay them, then \`POST /v1/payouts/{id}/mark_paid\` with the transaction id as \`external_id\`, or \`POST /v1/payout_batches/{id}/mark_paid\` for all of them.

\`\`\`sh
curl -sS -X POST "$RAIL/v1/payout_batches/$BATCH/send" -H "Authorization: Bearer $KEY"
\`\`\`

**Report what the bank says.** \`POST /v1/payout_batches/{id}/statuses\` takes the bank's status report (pain.002), or its notification (camt.054) where it sends no other, as XML. Each payment that it names settles its payout: accepted and settled is \`paid\`, rejected for a definite reason is \`failed\`, returned is \`failed\` with \`returned\`. Until then, a payout by file stays \`processing\`. A rejection that may be of a second copy changes nothing and is listed in \`not_applied\`: ask the bank, and record what was not paid with \`POST /v1/payouts/{id}/mark_failed\`. Without such reports, or where the bank reports on whole files only, mark payouts as paid by hand: \`POST /v1/payout_batches/{id}/mark_paid\` marks all of a batch that are \`processing\`, or with \`file\` those of one file.

**What becomes of a payout.** A payout has one of these statuses:

| status | meaning |
|---|---|
${statuses}

| from | by | to | events |
|---|---|---|---|
| \`pending\` | send | \`processing\` | \`payout.updated\` |
| \`processing\` | the rail reports success | \`paid\` | \`payout.paid\`, \`commission.paid\` for each commission |
| \`processing\` | the rail reports failure | \`failed\` | \`payout.failed\` |
| \`pending\`, \`failed\`; \`processing\` by bank, wire or crypto | \`mark_paid\` | \`paid\` | as a success |
| \`failed\` | \`retry\` | \`processing\` | \`payout.updated\` |
| \`failed\` | the rail reports a late success | \`paid\` | as a success |
| \`paid\` | the payment is returned | \`failed\` | \`payout.failed\` with \`returned\`, \`commission.updated\` for each commission |
| \`pending\`, \`failed\` | delete | deleted | \`payout.deleted\` |

Anything else is refused with 409 \`payout_locked\`.

**When a payout fails.** Its commissions stay in it. \`POST /v1/payouts/{id}/retry\` sends it again to the payout method that the partner has now, and \`POST /v1/payout_batches/{id}/retry\` sends all failed payouts of a batch again, those of one file method in one new file. What cannot be sent stays failed, and \`not_sent\` of the batch counts it by reason. \`DELETE\` gives the commissions to the next batch. \`error_code\` says what to do:

| error_code | what to do |
|---|---|
${error_codes}

**When the outcome is unknown.** After a timeout the payment may have been made. The payout stays \`processing\`: the service looks it up, or repeats the same request under the same idempotency key, which the provider pays once. When the key expires, it only looks up, and emails the owner of the organization. A payout is never sent a second time while the first attempt is open. If a payment succeeds twice, or after the payout was deleted, a clawback takes the excess from the next payout, and the risk flag \`double_payout\` is raised.

**Changes after the batch.** A refund, correction or deletion of a sale takes an unpaid commission out of a payout that was never sent, and the payout shrinks; if nothing is left, it is deleted. Once a payout was sent, a clawback reduces the next one. A negative balance waits for later commissions.

**Limits.** \`payout_limit_minor\`, and \`payout_limits\` for other currencies, bound what a program sends in a UTC day. What exceeds the limit stays pending, and the owner is emailed once a day.

**Test mode.** The \`mode\` of a rail decides whether money moves, not the key. Payouts of a rail in test mode have \`livemode: false\`, never count as paid, and give their commissions back when they end.

**Statements.** \`GET /v1/payouts/{id}/statement\` shows what a payout consists of, as JSON, CSV or PDF: each commission with the \`external_charge_id\` of its sale, refunds and clawbacks, bonuses, and totals.

**Reconciliation.** The amount of a payout is always the sum of its commissions: \`GET /v1/commissions?payout_id=…\` lists them, clawbacks included, and \`format=csv\` gives them to a spreadsheet. \`external_id\` is the id of the payment at the provider, and \`fee_minor\` what it charged. In a bank statement, the end-to-end id of a transfer is the id of the payout with the number of the attempt behind it, with hyphens in place of underscores. \`GET /v1/reports/payouts\` shows each batch with what is pending, processing, paid and failed.`;
