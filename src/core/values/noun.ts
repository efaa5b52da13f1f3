/** `webhook endpoint` of `webhook_endpoint`: an object as texts name it. */
export const nounOf = (object: string): string =>
  object
    .replaceAll('_', ' ')
    .replace(/^do not contact\b/, 'do-not-contact')
    .replace(/^api\b/, 'API');
