import type { Verification } from './email_address.ts';

/** What an address shows by itself: nobody is asked. Both lists are loaded at the first need of them. */
export async function verificationOf(address: string): Promise<Verification> {
  const [{ default: MailChecker }, { default: free_hosts }] = await Promise.all([
    import('mailchecker'),
    import('email-providers/all.json', { with: { type: 'json' } }),
  ]);
  if (!MailChecker.isValid(address)) return 'disposable';
  return free_hosts.includes(address.slice(address.lastIndexOf('@') + 1).toLowerCase()) ? 'webmail' : 'unknown';
}
