/** Endpoints that are incoming webhooks of a team chat: their whole address is the secret, and they take messages of the tool's own form. */
import type { Services } from '../../core/resource/services.ts';

export const chat_types = ['slack', 'discord', 'teams'] as const;

export const isChat = (type: string): boolean => (chat_types as readonly string[]).includes(type);

/** Where the incoming webhooks of each tool are. */
const addresses: Record<string, (url: URL) => boolean> = {
  slack: ({ hostname }) => hostname === 'hooks.slack.com',
  discord: ({ hostname, pathname }) =>
    ['discord.com', 'discordapp.com'].includes(hostname) && pathname.startsWith('/api/webhooks/'),
  teams: ({ hostname }) =>
    ['.logic.azure.com', '.api.powerplatform.com', '.webhook.office.com'].some((end) => hostname.endsWith(end)),
};

/** Whether an address is one of the tool, or of the hosts that the operator allows. */
export const isChatAddress = (type: string, url: URL, { chat_hosts }: Pick<Services, 'chat_hosts'>): boolean =>
  addresses[type]?.(url) === true || chat_hosts.includes(url.hostname);

/** What is shown of an address that is a secret: its host and its last four characters. */
export function hintOf(address: string): string {
  const { origin } = new URL(address);
  return `${origin}/...${address.slice(-4)}`;
}

const longest_wait_s = 86_400;

/** Of the header `Retry-After`, in seconds or as a date: at most a day. Undefined where it says nothing. */
export function retryAfterOf(header: string | string[] | undefined): number | undefined {
  const text = [header].flat()[0];
  if (text === undefined) return undefined;
  const seconds = /^\d+(\.\d+)?$/.test(text) ? Number(text) : (Date.parse(text) - Date.now()) / 1_000;
  return seconds > 0 ? Math.min(Math.ceil(seconds), longest_wait_s) : undefined;
}
