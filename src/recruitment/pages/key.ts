/** The key of a prospect in its channel: unique per brand and channel, and never with an `@`, so that it is no address. */

import { domainToASCII, domainToUnicode } from 'node:url';
import { getDomain, getHostname } from 'tldts';
import { accountOfForm, templateOfForm } from './platforms/account_forms.ts';
import { path_platforms } from './platforms/path_platforms.ts';
import {
  type AccountChannel,
  account_platforms,
  type Channel,
  type PathPlatform,
  platform_names,
  subdomain_platforms,
} from './platforms/platforms.ts';

const MAX_CHARACTERS = 2048;
const KEY = /^[A-Za-z0-9._-]{1,255}$/;
const CHANNEL_ID = /^UC[\w-]{22}$/;

/**
 * The canonical key of what a person or a page wrote: an address of a page, or a key already. A registrable domain for sites (the name
 * below it where a domain is shared by publishers), the id or the lower-case handle of an account for youtube, instagram, tiktok and x. An
 * account that only a path names is written as a name below its platform: `john.facebook.com`. Undefined where the text names no prospect
 * of this channel, an email address among them. Of its own results it gives the same again.
 */
export function canonicalKey(channel: Channel, text: string): string | undefined {
  const trimmed = text.trim();
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is refused
  if (trimmed.length > MAX_CHARACTERS || /[\s\u0000-\u001f\u007f\\]/.test(trimmed)) return undefined;
  const key = isAccountChannel(channel) ? accountKey(channel, trimmed) : siteKey(trimmed);
  return key !== undefined && KEY.test(key) ? key : undefined;
}

/**
 * Returns whether an address is of somebody else than the key: it names another prospect of the channel. An account may have a website of its
 * own; the id and the handle of a channel are two names of one. A page such as `/@jane` may be of the site's owner, where its key says so.
 */
export function contradicts(channel: Channel, key: string, url: string): boolean {
  const named = canonicalKey(channel, url);
  if (named === undefined) return !isAccountChannel(channel);
  if (channel === 'youtube' && CHANNEL_ID.test(named) !== CHANNEL_ID.test(key)) return false;
  return named !== key && !(templateOfForm(named) && registrableDomain(url) === key);
}

/** The channel that an address of a page belongs to, by its host. Undefined where it is no address on the web. */
export function channelOf(url: string): Channel | undefined {
  const parsed = webAddress(url.trim());
  if (parsed === undefined) return undefined;
  const domain = registrableDomain(parsed.hostname);
  if (domain === undefined) return undefined;
  return (
    accountChannelOf(parsed.hostname) ??
    pathPlatformsOf(parsed.hostname)[0]?.channel ??
    subdomain_platforms.get(sharedDomainOf(parsed.hostname) ?? '') ??
    'website'
  );
}

/** Returns the URL of a prospect's profile, by its canonical key. */
export function profileUrl(channel: Channel, key: string): string {
  if (channel === 'youtube' && CHANNEL_ID.test(key)) return `https://www.youtube.com/channel/${key}`;
  const [template, name] = isAccountChannel(channel)
    ? [account_platforms[channel].url, key]
    : (pathTemplateOf(key) ?? ['https://{}/', key]);
  // In a path the name is written in its own letters, in a host it stays ASCII.
  const is_in_host = /^https:\/\/[^/]*\{\}/.test(template);
  const written = !is_in_host && name.startsWith('xn--') ? domainToUnicode(name) || name : name;
  return template.replace('{}', () => encodeURI(written));
}

/** Returns whether two URLs are of one publisher: of one site or, on a shared site, of one account. */
export function isOneSite(url: string, other: string): boolean {
  const own = publisherOf(url);
  return own !== undefined && own === publisherOf(other);
}

/** Undefined for the own pages of a site that many share. */
function publisherOf(url: string): string | undefined {
  const channel = channelOf(url);
  if (channel === undefined) return URL.parse(url)?.hostname;
  const key = canonicalKey(channel, url);
  return key && `${isAccountChannel(channel) ? channel : ''} ${key}`;
}

/** The registrable domain of who runs a site that many share: neither it nor its addresses are those of the account. Undefined for other sites. */
export function platformOf(url: string): string | undefined {
  const domain = getDomain(url) ?? undefined;
  return domain && channelOf(url) && keyOf(url) !== domain ? domain : undefined;
}

/** Returns whether the URL of an account led to a page of the shared site itself, such as its login. */
export function isLostOnPlatform(asked: string, found: string): boolean {
  const platform = platformOf(asked);
  return platform !== undefined && getDomain(found) === platform && (keyOf(found) ?? platform) === platform;
}

/** Returns whether an account is a homepage of somebody who belongs to the house that runs the site, such as a university. */
export const isOfHouse = (url: string): boolean => /\._(?:tilde|people)\./.test(keyOf(url) ?? '');

function keyOf(url: string): string | undefined {
  const channel = channelOf(url);
  return channel && canonicalKey(channel, url);
}

/** The registrable domain of a host or URL: what one owner holds, so `a.blogspot.com` but `example.co.uk`. Undefined for addresses and single labels. */
export function registrableDomain(hostOrUrl: string): string | undefined {
  const host = getHostname(hostOrUrl) ?? '';
  return getDomain(host, { allowPrivateDomains: true }) ?? getDomain(host) ?? undefined;
}

function isAccountChannel(channel: Channel): channel is AccountChannel {
  return channel in account_platforms;
}

/** A channel's id keeps its case, since it means something; it cannot be taken for a handle, which is in lower case. */
function accountKey(channel: AccountChannel, text: string): string | undefined {
  const { hosts, name } = account_platforms[channel];
  const url = webAddress(text);
  const given = url && hosts.includes(getDomain(url.hostname) ?? '') ? accountInPath(channel, url) : text;
  if (given === undefined) return undefined;
  if (channel === 'youtube' && CHANNEL_ID.test(given)) return given;
  const handle = asciiName(given.replace(/^@/, ''));
  return handle !== undefined && name.test(handle) ? handle : undefined;
}

function accountInPath(channel: AccountChannel, url: URL): string | undefined {
  const { paths, own_pages } = account_platforms[channel];
  if (url.hostname === 'youtu.be') return undefined;
  // Old URLs of Twitter have a fragment: twitter.com/#!/name.
  const path = url.hash.startsWith('#!/') ? url.hash.slice(2) : url.pathname;
  for (const pattern of paths) {
    const name = pattern.exec(path)?.[1];
    if (name !== undefined) return own_pages.has(name.toLowerCase()) && !path.startsWith('/@') ? undefined : name;
  }
  return undefined;
}

/** A name that its own key would not give again, such as `m` of `m.ebay.co.uk`, is none. */
function siteKey(text: string): string | undefined {
  const key = keyOfSite(text);
  return key === undefined || key === text || keyOfSite(key) === key ? key : undefined;
}

function keyOfSite(text: string): string | undefined {
  const formed = KEY.test(text) ? templateOfForm(text) : undefined;
  if (formed !== undefined) return keyOfSite(formed[0].replace('{}', () => formed[1]));
  const known = pathTemplateOf(text);
  if (known !== undefined) return platform_names.has(known[1].toLowerCase()) ? undefined : keepCase(text, known[1]);
  const url = webAddress(text);
  if (url === undefined) return undefined;
  const host = withoutWww(url.hostname);
  const platforms = pathPlatformsOf(host);
  if (platforms.length > 0 && url.pathname !== '/') return keyByPath(platforms, url);
  const shared = sharedDomainOf(host);
  if (shared === undefined) return isOfMany(host) ? undefined : keyByForm(host, url.pathname);
  const name = nameBelow(host, shared);
  return name && `${name}.${canonicalShared(shared)}`;
}

/** Returns whether only a path or a name below the host names the account: the site itself is nobody. */
const isOfMany = (host: string): boolean =>
  accountChannelOf(host) !== undefined ||
  path_hosts.has(host) ||
  path_hosts.has(getDomain(host) ?? '') ||
  (isSuffix(host) && getDomain(host) !== null);

const isSuffix = (host: string): boolean => getDomain(host, { allowPrivateDomains: true }) === null;

function keyByPath(platforms: PathPlatform[], url: URL): string | undefined {
  for (const { path, host, with_query } of platforms) {
    const name = path.exec(with_query ? url.pathname + url.search : url.pathname)?.[1];
    const label = name && (isCaseSensitive(host) ? name : asciiName(name));
    if (label) return `${label}.${host}`;
  }
  const shared = sharedDomainOf(url.hostname);
  const below = shared && nameBelow(url.hostname, shared);
  return below && `${below}.${shared}`;
}

/** An account, where the path says by its form that it is one: also of another host, as `/@ann@other.example`. Else the site. */
function keyByForm(host: string, path: string): string | undefined {
  const domain = registrableDomain(host);
  const account = domain && accountOfForm(decodePath(path) ?? '');
  if (!account) return domain;
  const [name = '', at = host] = account.name.split('@');
  return registrableDomain(at) && `${asciiName(name)}.${account.form}.${withoutWww(at.toLowerCase())}`;
}

const path_hosts = Map.groupBy(
  path_platforms.flatMap((platform) =>
    [platform.host, ...(platform.aliases ?? [])].map((host) => ({ host, platform })),
  ),
  ({ host }) => host,
);

/** Subdomains that show the accounts of the platform itself: de.linkedin.com, m.facebook.com. */
const view = /^(?:m|open|mobile|mbasic|touch|web|old|new|amp|[a-z]{2}(?:-[a-z]{2})?)\.[^.]/;

/** Platforms whose accounts may be at this host. */
function pathPlatformsOf(host: string): PathPlatform[] {
  const bare = withoutWww(host);
  const domain = getDomain(host) ?? '';
  const is_view = view.test(bare) && nameOfPublisher(host, domain) === undefined;
  return [bare, ...(is_view ? [bare.slice(bare.indexOf('.') + 1)] : [])].flatMap(
    (each) => path_hosts.get(each)?.map(({ platform }) => platform) ?? [],
  );
}

function nameOfPublisher(host: string, domain: string): string | undefined {
  return subdomain_platforms.has(domain) ? nameBelow(host, domain) : undefined;
}

const platform_of_host = new Map(path_platforms.toReversed().map((platform) => [platform.host, platform]));

/** The address and the name of a key that is already one of an account below a path platform. */
function pathTemplateOf(key: string): [template: string, name: string] | undefined {
  if (!KEY.test(key)) return undefined;
  const formed = templateOfForm(key);
  if (formed) return formed;
  const lower = key.toLowerCase();
  for (let dot = lower.indexOf('.'); dot > 0; dot = lower.indexOf('.', dot + 1)) {
    const platform = platform_of_host.get(lower.slice(dot + 1));
    if (platform) return [platform.url, key.slice(0, dot)];
  }
  return undefined;
}

function keepCase(key: string, name: string): string {
  const host = key.slice(name.length + 1).toLowerCase();
  return `${isCaseSensitive(host) ? name : name.toLowerCase()}.${host}`;
}

function isCaseSensitive(host: string): boolean {
  return platform_of_host.get(host)?.is_case_sensitive === true;
}

function accountChannelOf(host: string): AccountChannel | undefined {
  const domain = getDomain(host) ?? '';
  return (Object.keys(account_platforms) as AccountChannel[]).find((each) =>
    account_platforms[each].hosts.includes(domain),
  );
}

/** The domain of a host whose names are publishers of their own. Blogger shows the same blogs under the domains of many countries. */
function sharedDomainOf(host: string): string | undefined {
  const domain = getDomain(host) ?? '';
  return subdomain_platforms.has(canonicalShared(domain)) ? domain : undefined;
}

function canonicalShared(domain: string): string {
  return /^blogspot\.[a-z]{2,3}(?:\.[a-z]{2})?$/.test(domain) ? 'blogspot.com' : domain;
}

function nameBelow(host: string, domain: string): string | undefined {
  const name = host
    .slice(0, -domain.length - 1)
    .split('.')
    .at(-1);
  return name === undefined || name === '' || platform_names.has(name) ? undefined : name;
}

function withoutWww(host: string): string {
  return /^www\d?\.[^.]+\./.test(host) ? host.slice(host.indexOf('.') + 1) : host;
}

/** A handle in another script is written as in a domain name: its letters are ASCII then. */
function asciiName(name: string): string | undefined {
  const decoded = decodePath(name)?.normalize('NFC').toLowerCase();
  if (decoded === undefined) return undefined;
  return /^[\x21-\x7e]+$/.test(decoded) ? decoded : domainToASCII(decoded) || undefined;
}

function decodePath(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

/** The prefix of archived pages: the time of the copy, before the URL. The Wayback Machine accepts the URL without its scheme too. */
const copied = /^\/(?:(?:web|wayback)\/(?:[\d*]\w*\/)?|(?:\d[\d.-]{3,}|newest|oldest)\/)(https?:\/.+)$/i;
const copied_there = /^\/web\/[\d*]\w*\/([^/].*)$/;

/** An address on the web; of a copy in an archive that of the page that was copied. */
export function webAddress(text: string): URL | undefined {
  const url = parseAddress(text);
  const patterns = url?.hostname === 'web.archive.org' ? [copied, copied_there] : [copied];
  const [copy] = patterns.flatMap((each) => (url && each.exec(url.pathname)?.[1]) ?? []);
  return url && copy ? webAddress(copy.replace(/^(https?:)\/+/i, '$1//') + url.search) : url;
}

/** Parses an address with or without its scheme. Undefined for other schemes, for one with a user's name, and so for an email address. */
function parseAddress(text: string): URL | undefined {
  const withScheme = /^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `https://${text.replace(/^\/\//, '')}`;
  const url = URL.parse(withScheme);
  if (url === null || !/^https?:$/.test(url.protocol) || url.username !== '' || url.password !== '') return undefined;
  url.hostname = url.hostname.replace(/(?<!\.)\.+$/, '');
  return url;
}
