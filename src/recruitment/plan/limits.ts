/** The limits of each plan: pure values. */
import { z } from 'zod';

/** In which search providers are paid for: their prices are in US dollars. */
export const provider_currency = 'USD';

export const plan_names = ['starter', 'grow', 'enterprise'] as const;
export type PlanName = (typeof plan_names)[number];

export const Features = z.object({
  outreach: z.boolean().describe('Whether campaigns can send.'),
  webhooks: z.boolean().describe('Whether webhook endpoints receive events.'),
  weekly_scans: z.boolean().describe('Whether brands are scanned each week.'),
});
export type Feature = keyof z.infer<typeof Features>;

const limit = (meaning: string) => z.int().nullable().describe(`${meaning} Null: any number.`);
export const Limits = z.object({
  brands: limit('How many brands there can be.'),
  inboxes: limit('How many inboxes can be connected.'),
  seats: limit('How many team members there can be.'),
  searches_monthly: limit('Searches a month.'),
  reveals_monthly: limit('Reveals of addresses a month.'),
  daily_sends: limit('Emails a day (UTC).'),
});
type Limits = z.infer<typeof Limits>;

interface Included {
  features: Record<Feature, boolean>;
  limits: Limits;
}

const all = { outreach: true, webhooks: true, weekly_scans: true };

export const included: Record<PlanName, Included> = {
  starter: {
    features: { outreach: false, webhooks: false, weekly_scans: false },
    limits: { brands: 1, inboxes: 0, seats: 1, searches_monthly: 20, reveals_monthly: 20, daily_sends: 0 },
  },
  grow: {
    features: all,
    limits: { brands: 3, inboxes: 5, seats: 5, searches_monthly: 200, reveals_monthly: 500, daily_sends: 500 },
  },
  enterprise: {
    features: all,
    limits: {
      ...{ brands: null, inboxes: null, seats: null, searches_monthly: null, reveals_monthly: null },
      daily_sends: null,
    },
  },
};

/** The credits of a month: one for each search and each reveal that the plan has. Null: they are not limited. */
export function creditsOf(name: PlanName): number | null {
  const { searches_monthly, reveals_monthly } = included[name].limits;
  return searches_monthly === null || reveals_monthly === null ? null : searches_monthly + reveals_monthly;
}

/** The first day of a month, and of the next one (UTC). */
export const monthOf = (now: string): string => `${now.slice(0, 7)}-01`;
export function nextMonth(now: string): string {
  const [year = 0, month = 0] = now.split('-').map(Number);
  return new Date(Date.UTC(year, month, 1)).toISOString();
}
