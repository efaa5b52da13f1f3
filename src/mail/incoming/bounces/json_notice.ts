import { z } from 'zod';
import type { Message } from '../message/message.ts';

/** A notification of Amazon SES, which subscribers of its topic get by mail as JSON. */
const Notice = z.object({
  notificationType: z.enum(['Bounce', 'Complaint', 'Delivery']),
  mail: z
    .object({
      destination: z.array(z.string()).optional(),
      headers: z.array(z.object({ name: z.string(), value: z.string() })).optional(),
    })
    .optional(),
  bounce: z
    .object({
      bounceType: z.string().optional(),
      bouncedRecipients: z.array(
        z.object({ emailAddress: z.string(), status: z.string().optional(), diagnosticCode: z.string().optional() }),
      ),
    })
    .optional(),
  complaint: z.object({ complainedRecipients: z.array(z.object({ emailAddress: z.string() })) }).optional(),
  delivery: z.object({ smtpResponse: z.string().optional() }).optional(),
});
export type JsonNotice = z.infer<typeof Notice>;

/** The notification in a text, itself or within the envelope of the topic; undefined where there is none. */
export function readJsonNotice({ text, from }: Message): JsonNotice | undefined {
  if (!text.includes('notificationType') || !/amazonaws|amazonses|^$/.test(from)) return undefined;
  const json = parsed(text.slice(text.indexOf('{'), endOfObject(text)));
  const inner = typeof json === 'object' && json !== null && 'Message' in json ? parsed(String(json.Message)) : json;
  return Notice.safeParse(inner).data;
}

/** Long lines arrive broken at blanks, some of them within strings. */
function parsed(text: string): unknown {
  for (const candidate of [text, text.replace(/\n\s?/g, ' '), text.replace(/\n\s?/g, '')]) {
    try {
      return JSON.parse(candidate);
    } catch {
      // The next reading may be whole.
    }
  }
  return undefined;
}

function endOfObject(text: string): number {
  const footer = text.indexOf('\n--\n');
  return text.lastIndexOf('}', footer < 0 ? text.length : footer) + 1;
}
