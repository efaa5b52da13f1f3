import { nounOf } from './noun.ts';

/**
 * The one catalogue of errors: code → type, status, and what it means. The OpenAPI description and llms-full.txt list it.
 * A code's status follows from its type unless it is named.
 */
const status_of_type = {
  authentication_error: 401,
  permission_error: 403,
  invalid_request_error: 400,
  not_found_error: 404,
  conflict_error: 409,
  rate_limit_error: 429,
  plan_error: 402,
  not_implemented_error: 501,
  api_error: 500,
} as const;

export type ProblemType = keyof typeof status_of_type;

const entry = (type: ProblemType, doc: string, status: number = status_of_type[type]) => ({ type, doc, status });

export const problems = {
  missing_api_key: entry('authentication_error', 'The request carries no API key.'),
  invalid_api_key: entry('authentication_error', 'The API key does not exist.'),
  revoked_api_key: entry('authentication_error', 'The API key was revoked.'),
  expired_api_key: entry('authentication_error', 'The API key has expired, or was rotated and its overlap is over.'),
  signature_required: entry(
    'authentication_error',
    'The key requires signed requests, and this request is not signed.',
  ),
  signature_invalid: entry('authentication_error', 'The signature does not match the key and the body.'),
  signature_expired: entry(
    'authentication_error',
    'The time of the signature is more than five minutes from the current time.',
  ),
  insufficient_scope: entry('permission_error', 'The key lacks the scope that `param` names.'),
  ip_not_allowed: entry('permission_error', 'The key cannot be used from the address of this request.'),
  origin_not_allowed: entry(
    'permission_error',
    'The publishable key cannot be used by pages of the origin of this request.',
  ),
  key_not_allowed: entry(
    'permission_error',
    'A key cannot create or change a key that may do more than itself, or that belongs to another user.',
  ),
  code_required: entry('permission_error', 'The form needs a code of the authenticator app.'),
  form_not_allowed: entry('permission_error', 'A form was not sent from a page of this service.'),
  approval_not_allowed: entry(
    'permission_error',
    'This key cannot approve: it belongs to no user, or to the user whose work is to be approved.',
  ),
  test_key_not_allowed: entry('permission_error', 'A test key cannot do this.'),
  invalid_json: entry('invalid_request_error', 'The body is not valid JSON, or an object in it has a name twice.'),
  missing_parameter: entry('invalid_request_error', 'A required parameter is missing.'),
  invalid_parameter: entry('invalid_request_error', 'A parameter has a value that is not allowed.'),
  unknown_parameter: entry(
    'invalid_request_error',
    'The request has a parameter that does not exist here. Unknown parameters are refused, never ignored.',
  ),
  invalid_expand: entry('invalid_request_error', '`expand` names a relation that cannot be expanded here.'),
  invalid_include: entry('invalid_request_error', '`include[]` names an addition that does not exist here.'),
  invalid_cursor: entry('invalid_request_error', 'The cursor is not the id of an object in this list.'),
  invalid_position: entry(
    'invalid_request_error',
    'The position was not returned by an export of this resource, or is too old, or is from before the database was restored. Export without `since`.',
  ),
  currency_mismatch: entry('invalid_request_error', 'The currency differs from the currency that is required here.'),
  refund_exceeds_sale: entry(
    'invalid_request_error',
    'The refund exceeds the amount of the sale that is not refunded.',
  ),
  address_not_allowed: entry(
    'invalid_request_error',
    'The URL or host is not a public internet address that is allowed here.',
  ),
  resource_not_found: entry('not_found_error', 'The object does not exist in your organization.'),
  route_not_found: entry('not_found_error', 'The path does not exist.'),
  method_not_allowed: entry(
    'invalid_request_error',
    'The path does not support this method. `Allow` lists the methods that it supports.',
    405,
  ),
  request_timeout: entry('invalid_request_error', 'The request did not arrive completely in time.', 408),
  expectation_failed: entry(
    'invalid_request_error',
    'The request has a header `Expect` other than `100-continue`.',
    417,
  ),
  payload_too_large: entry(
    'invalid_request_error',
    'The body is larger than 1 MiB, or than what the operation says.',
    413,
  ),
  headers_too_large: entry('invalid_request_error', 'The path and the headers are longer than 16 KiB together.', 431),
  unsupported_media_type: entry(
    'invalid_request_error',
    'The body must be application/json, or what the operation says.',
    415,
  ),
  smtp_auth_failed: entry('invalid_request_error', 'The SMTP server refused the login.', 422),
  imap_auth_failed: entry('invalid_request_error', 'The IMAP server refused the login.', 422),
  smtp_unreachable: entry(
    'invalid_request_error',
    'The SMTP server could not be reached, or did not answer in time.',
    422,
  ),
  imap_unreachable: entry(
    'invalid_request_error',
    'The IMAP server could not be reached, or did not answer in time.',
    422,
  ),
  oauth_failed: entry('invalid_request_error', 'The provider refused the refresh token.', 422),
  idempotency_key_reused: entry('invalid_request_error', 'The idempotency key was used for a different request.', 422),
  resource_already_exists: entry('conflict_error', 'An object with this value exists already; `existing` holds it.'),
  idempotency_key_in_flight: entry('conflict_error', 'The first request with this idempotency key is still running.'),
  invalid_state_transition: entry('conflict_error', 'The state of the object does not allow this.'),
  self_referral: entry('conflict_error', 'The customer is the partner, and self-referrals are blocked.'),
  click_expired: entry('conflict_error', 'The click is older than its cookie window.'),
  click_without_credit: entry(
    'conflict_error',
    'The click earned no credit, so no partner is credited with its visitor.',
  ),
  commission_locked: entry('conflict_error', 'The commission is in a payout.'),
  payout_locked: entry('conflict_error', 'The payout is in progress or settled.'),
  sale_already_refunded: entry('conflict_error', 'The sale is fully refunded.'),
  sample_prospect: entry('conflict_error', 'The prospect is a sample, with which this cannot be done.'),
  preflight_failed: entry('conflict_error', 'Something keeps the campaign from being launched: `message` lists it.'),
  too_many_imports: entry('conflict_error', 'Too many imports are queued or running. Wait until one has finished.'),
  cannot_lift: entry('conflict_error', 'What bars the prospect, the address or the domain cannot be lifted here.'),
  suppressed: entry(
    'conflict_error',
    'The prospect must not be written to: they are marked Do not contact, unsubscribed, or their address is barred.',
  ),
  endpoint_disabled: entry('conflict_error', 'The webhook endpoint is disabled.'),
  rate_limit_exceeded: entry(
    'rate_limit_error',
    'The key, or the address of a request without a valid key, has reached its number of requests in this second, or the organization runs as many reports or reads as many streamed responses as it can at once. Retry after the time in `Retry-After`.',
  ),
  plan_limit_reached: entry('plan_error', 'The plan’s limit is reached.'),
  feature_not_in_plan: entry('plan_error', 'The plan does not include this feature.'),
  no_credits: entry('plan_error', 'No credits are left this month.'),
  not_implemented: entry('not_implemented_error', 'The feature is not available yet.'),
  internal_error: entry('api_error', 'An unexpected error occurred. Retry with the same idempotency key.'),
  service_unavailable: entry(
    'api_error',
    'The service is temporarily unavailable. Retry after the time in `Retry-After`.',
    503,
  ),
} as const;

export type ProblemCode = keyof typeof problems;

interface ProblemDetails {
  /** The parameter that caused it. */
  param?: string;
  /** The record that has the value already (409). */
  existing?: object;
  headers?: Record<string, string>;
  /** A rejection whose writes commit, as with a blocked self-referral, whose referral is deleted. */
  keep_effects?: boolean;
}

/** An expected failure. Thrown anywhere in a handler; it rolls the transaction back and becomes the error envelope. */
export class Problem extends Error {
  readonly code: ProblemCode;
  readonly details: ProblemDetails;

  constructor(code: ProblemCode, message: string, details: ProblemDetails = {}) {
    super(message);
    this.name = 'Problem';
    this.code = code;
    this.details = details;
  }

  get status(): number {
    return problems[this.code].status;
  }

  /** `{ error: { type, code, message, param? }, existing? }`, as section 7 of the specification has it. */
  envelope(): object {
    const { param, existing } = this.details;
    return {
      error: {
        type: problems[this.code].type,
        code: this.code,
        message: this.message,
        ...(param === undefined ? {} : { param }),
      },
      ...(existing === undefined ? {} : { existing }),
    };
  }
}

/** 409 for a value that another record has, with that record. */
export const alreadyExists = (param: string, message: string, existing: object | undefined): Problem =>
  new Problem('resource_already_exists', message, { param, ...(existing ? { existing } : {}) });

/** 404 for an id that is unknown, deleted, or another organization's: one answer for all three. */
export const notFound = (kind: string, id: string, param = 'id'): Problem =>
  notFoundIn('your organization', kind, id, param);

/** The same for an id that may be of another program. */
export const notInProgram = (kind: string, id: string, param: string): Problem =>
  notFoundIn('this program', kind, id, param);

const notFoundIn = (place: string, kind: string, id: string, param: string): Problem =>
  new Problem('resource_not_found', `No ${nounOf(kind)} with the id '${id}' in ${place}.${exampleHint(id)}`, { param });

/** `/docs` sends ids of its examples until they are replaced. */
const exampleHint = (id: string): string =>
  id.startsWith('sample_')
    ? " Ids that begin with 'sample_' are examples in the documentation: send one that a list returned."
    : '';

/** A rejection whose writes commit: it is thrown after the commit. */
export function problemThatCommits(error: unknown): Problem {
  if (error instanceof Problem && error.details.keep_effects) return error;
  throw error;
}
