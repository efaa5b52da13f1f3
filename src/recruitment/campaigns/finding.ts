/** The findings of a preflight: codes, messages and schemas. */
import { z } from 'zod';
import { id, text } from '../../core/values/fields.ts';

/** Findings that keep a campaign from being launched. The meanings are shown in the description. */
export const blocking = {
  no_steps: 'The campaign has no steps. Add at least one.',
  no_prospects: 'No prospect waits for the first email. Add prospects to the campaign.',
  nobody_to_write_to: 'No prospect of the campaign can be written to. See the warnings.',
  no_inbox: 'The campaign has no inbox that is connected. Set `inbox_ids`, or reconnect an inbox.',
  not_entitled: 'The plan does not include outreach. Ask the operator of the service for another plan.',
  no_postal_address: 'The brand has no postal address. Set `postal_address` of the brand.',
  no_privacy_url: 'The brand has no privacy notice. Set `privacy_url` of the brand.',
  base_url_not_https:
    'Unsubscribe links need https. Ask the operator of the service to set BASE_URL to an https address.',
} as const;
type BlockingCode = keyof typeof blocking;

export const warnings = {
  no_address: 'No usable address is known. These prospects fail. Reveal or add addresses.',
  do_not_contact: 'The prospects are marked Do not contact. These prospects fail.',
  suppressed: 'Every address of these prospects is barred or unsubscribed. These prospects fail.',
  invalid_address: 'No address can receive email. These prospects fail. Reveal or add others.',
  risky_address:
    'The addresses are disposable, or at domains that accept every address. These prospects fail unless you set `allow_risky`.',
  in_another_campaign:
    'Another open sequence writes to the same address. These prospects fail, unless that sequence ends first.',
  template_error: 'The template cannot be rendered for these prospects, whose sequences fail at this step.',
  not_all_rendered:
    'The templates could not be rendered for every prospect in 5 seconds. The others are checked when their emails are sent.',
  inbox_disconnected: 'An inbox of the campaign is disconnected. Nothing is sent from it until you reconnect it.',
  replies_elsewhere: 'An inbox has a `reply_to` that is not its own address. Replies to it are not read.',
  takes_long: 'The first emails take more than 30 days. Add inboxes, or raise their daily limits.',
  consent_required:
    'In these countries, advertising may be sent by email only with consent, also to businesses. Make sure that you have it.',
  unsubscribe_headers_unsigned:
    'One-click unsubscribing requires that the provider signs List-Unsubscribe and List-Unsubscribe-Post by DKIM, which the service cannot verify. Send a test, and check that `h=` of its DKIM-Signature names both.',
} as const;
type WarningCode = keyof typeof warnings;

const shown_ids = 10;

const about = {
  message: text.describe('What is wrong, and what to do.'),
  field: text
    .nullable()
    .describe('The field that it concerns, such as `steps.0.body_text`. Null if it concerns no field.'),
  prospects: z.int().nullable().describe('How many prospects it concerns. Null if it concerns no single prospects.'),
  prospect_ids: z.array(id('fdi')).describe(`Up to ${shown_ids} of them.`),
};
const codesOf = <Codes extends Record<string, string>>(codes: Codes) =>
  z.enum(Object.keys(codes) as [keyof Codes & string, ...(keyof Codes & string)[]]).describe(
    Object.entries(codes)
      .map(([code, meaning]) => `\`${code}\`: ${meaning}`)
      .join(' '),
  );
export const Blocking = z.object({ code: codesOf(blocking), ...about });
export const Warning = z.object({ code: codesOf(warnings), ...about });
export type Blocking = z.infer<typeof Blocking>;
export type Warning = z.infer<typeof Warning>;

export const blocks = (code: BlockingCode, field: string | null = null): Blocking => ({
  ...{ code, message: blocking[code], field, prospects: null, prospect_ids: [] },
});

interface Found {
  field?: string | null;
  message?: string;
  prospects?: number | null;
  prospect_ids?: string[];
}

export const warns = (code: WarningCode, found: Found = {}): Warning => ({
  ...{ code, message: found.message ?? warnings[code], field: found.field ?? null, prospects: found.prospects ?? null },
  prospect_ids: (found.prospect_ids ?? []).slice(0, shown_ids),
});
