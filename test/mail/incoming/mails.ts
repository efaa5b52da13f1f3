/** Mails for the tests of what comes in. */

const defaults = {
  From: 'Grace Hopper <grace@blog.example>',
  To: 'ada@shop.example',
  Subject: 'Re: A partner program for your blog',
  Date: 'Tue, 3 Feb 2026 10:00:00 +0000',
  'Message-ID': '<answer@blog.example>',
  'MIME-Version': '1.0',
  'Content-Type': 'text/plain; charset=utf-8',
};

/** A mail of these fields, with the usual ones where nothing else is said; a field that is empty is left out. */
export function mail(fields: Record<string, string>, body: string): string {
  const all = Object.entries({ ...defaults, ...fields }).filter(([, value]) => value !== '');
  return `${all.map(([name, value]) => `${name}: ${value}`).join('\n')}\n\n${body}\n`;
}

/** A multipart/report of a mail server. */
export function report(type: string, parts: [type: string, text: string][]): string {
  const body = parts.map(([of, text]) => `--b1\nContent-Type: ${of}\n\n${text}\n`).join('\n');
  return mail(
    {
      From: 'Mail Delivery System <MAILER-DAEMON@mx.example>',
      Subject: 'Delivery report',
      'Auto-Submitted': 'auto-replied',
      'Content-Type': `multipart/report; report-type=${type}; boundary="b1"`,
    },
    `${body}--b1--`,
  );
}

/** As it comes over the wire. */
export const crlf = (text: string): Uint8Array => new TextEncoder().encode(text.replace(/\r?\n/g, '\r\n'));
