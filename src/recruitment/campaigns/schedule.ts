import { z } from 'zod';
import { zone_error, zoneNamed } from '../../core/values/time_zone.ts';

const zone = z
  .string()
  .max(64)
  .refine((name) => name === 'recipient' || zoneNamed(name) !== undefined, `${zone_error}. Or \`recipient\``)
  .overwrite((name) => (name === 'recipient' ? name : (zoneNamed(name) ?? name)))
  .describe(
    "The IANA time zone of `days`, `from` and `to`. `recipient`: the time zone of each prospect, else that of its country if it has only one, else the brand's `default_timezone`.",
  );
const days = z
  .array(z.int().min(1).max(7))
  .min(1)
  .max(7)
  .refine((each) => new Set(each).size === each.length, 'must not name a day twice')
  .describe('The days on which emails may be sent, by ISO 8601: 1 is Monday, 7 is Sunday.');
const from = z
  .string()
  .regex(/^([01]\d|2[0-3]):[0-5]\d$/, 'must be a time between 00:00 and 23:59, such as 09:00')
  .describe('The local time from which emails may be sent: `HH:MM`.');
const to = z
  .string()
  .regex(/^(([01]\d|2[0-3]):[0-5]\d|24:00)$/, 'must be a time between 00:01 and 24:00, such as 17:00')
  .describe(
    'The local time until which emails may be sent, exclusive: `HH:MM`, later than `from`. `24:00` is midnight.',
  );

/** When emails of a campaign may be sent. */
export const scheduleSchema = z
  .strictObject({ timezone: zone, days, from, to })
  // Times of two digits each sort as texts.
  .refine((window) => window.from < window.to, { path: ['to'], error: 'must be later than `from`' })
  .describe('The window in which emails may be sent: on `days`, from `from` until before `to`.');

export type Schedule = z.infer<typeof scheduleSchema>;
