/** Endpoints that are incoming webhooks of a team chat: their whole address is the secret, and they take messages of the tool's own form. */
import type { Services } from '../../core/resource/services.ts';

export const chat_types = ['slack', 'discord', 'teams'] as const;

export const isChat = (type: string): boolean => (chat_types as readonly string[]).includes(type);

/** Recognizes the incoming webhooks of each tool. */
const addresses: Record<string, (url: URL) => boolean> = {
  slack: ({ hostname }) => hostname === 'hooks.slack.com',
  discord: ({ hostname, pathname }) =>
    ['discord.com', 'discordapp.com'].includes(hostname) && pathname.startsWith('/api/webhooks/'),
  teams: ({ hostname }) =>
    ['.logic.azure.com', '.api.powerplatform.com', '.webhook.office.com'].some((end) => hostname.endsWith(end)),
};

/** Returns whether an address belongs to the tool, or to a host that the operator allows. */
export const isChatAddress = (type: string, url: URL, { chat_hosts }: Pick<Services, 'chat_hosts'>): boolean =>
  addresses[type]?.(url) === true || chat_hosts.includes(url.hostname);

/** Returns the visible part of an address that is a secret: its host and its last four characters. */
export function hintOf(address: string): string {
  const { origin } = new URL(address);
  return `${origin}/...${address.slice(-4)}`;
}
