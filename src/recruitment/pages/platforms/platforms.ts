/** Hosts that many publishers share, so that the host alone does not name one. All of it is data: hosts are in lower case. */
import type { z } from 'zod';
import type { channel } from '../events/fields.ts';

export type Channel = z.infer<typeof channel>;
/** Channels whose prospects are accounts of one platform. */
export type AccountChannel = 'youtube' | 'instagram' | 'tiktok' | 'x';

/**
 * Where the account is in the path, and what an account's name looks like. `own_pages` are first parts of a path that are the platform's
 * own pages, and never an account.
 */
type AccountPlatform = { hosts: string[]; paths: RegExp[]; name: RegExp; own_pages: ReadonlySet<string>; url: string };

export const account_platforms: Record<AccountChannel, AccountPlatform> = {
  youtube: {
    hosts: ['youtube.com', 'youtu.be', 'youtube-nocookie.com'],
    paths: [/^\/channel\/(UC[\w-]{22})(?:\/|$)/, /^\/(?:c|user)\/([^/]+)/, /^\/@([^/]+)/, /^\/([^/@]+)\/?$/],
    name: /^[a-z0-9](?:[a-z0-9._-]{0,98}[a-z0-9_-])?$/,
    own_pages: words(
      'watch feed feeds playlist shorts results embed live gaming premium about t hashtag post music kids tv ads',
      'account channel user c v e oops redirect signin howyoutubeworks creators trends iframe_api clip source',
    ),
    url: 'https://www.youtube.com/@{}',
  },
  instagram: {
    hosts: ['instagram.com', 'instagr.am'],
    paths: [/^\/stories\/([^/]+)/, /^\/_u\/([^/]+)/, /^\/@?([^/]+)/],
    name: /^(?!\.)[a-z0-9._]{1,30}$/,
    own_pages: words(
      'p reel reels tv explore accounts about developer developers direct legal web api oauth challenge session',
      'blog press privacy terms download share sharer directory lite stories highlights s',
    ),
    url: 'https://www.instagram.com/{}/',
  },
  tiktok: {
    hosts: ['tiktok.com'],
    paths: [/^\/@([^/]+)/],
    name: /^[a-z0-9._]{2,24}$/,
    own_pages: words(''),
    url: 'https://www.tiktok.com/@{}',
  },
  x: {
    hosts: ['x.com', 'twitter.com'],
    paths: [/^\/@?([^/]+)/],
    name: /^\w{1,15}$/,
    own_pages: words(
      'home search explore i intent share hashtag settings login logout messages notifications tos privacy compose',
      'signup jobs about download account oauth widgets who_to_follow personalization statuses',
    ),
    url: 'https://x.com/{}',
  },
};

/** Each name directly below these domains is a publisher of its own; so are the private domains of the public suffix list. */
export const subdomain_platforms: ReadonlyMap<string, Channel> = new Map([
  ...hostsOf(
    'newsletter',
    'substack.com beehiiv.com ghost.io curated.co mailchimpsites.com kit.com ck.page steady.page',
  ),
  ...hostsOf(
    'podcast',
    'buzzsprout.com podbean.com libsyn.com transistor.fm simplecast.com castos.com captivate.fm fireside.fm podigee.io',
    'podcaster.de letscast.fm ausha.co podomatic.com hubhopper.com redcircle.com podcastpage.io blubrry.net pinecast.co',
  ),
  ...hostsOf(
    'website',
    'blogspot.com medium.com wordpress.com tumblr.com livejournal.com typepad.com over-blog.com canalblog.com micro.blog',
    'hashnode.dev bearblog.dev weebly.com jimdofree.com jimdosite.com webnode.com webnode.page wixsite.com',
    'squarespace.com strikingly.com carrd.co tilda.ws hatenablog.com hatenablog.jp hateblo.jp fc2.com seesaa.net',
    'tistory.com blog.hu blogg.se altervista.org mozello.com site123.me blogspot.com',
  ),
]);

/** Names below those domains that are the platform itself. */
export const platform_names = words(
  'www m mobile about help support blog api cdn app apps admin mail login signup account accounts static assets open',
  'feeds feed rss status developers developer press jobs careers on web',
);

/**
 * Where the path names the publisher. The key is what `path` takes, below `host`: john of facebook.com is `john.facebook.com`. `url` gives
 * the address back. `aliases` are other hosts of the same accounts.
 */
export type PathPlatform = {
  channel: Channel;
  host: string;
  aliases?: string[];
  path: RegExp;
  url: string;
  /** Names that differ by letter case alone are of two accounts. */
  is_case_sensitive?: boolean;
};

/** Hosts of feeds, whose path names the podcast. */
const podcast_feeds: PathPlatform[] = [
  { host: 'feeds.megaphone.fm', path: /^\/([\w.-]+)/, url: 'https://feeds.megaphone.fm/{}', is_case_sensitive: true },
  { host: 'feeds.buzzsprout.com', path: /^\/(\d+)/, url: 'https://feeds.buzzsprout.com/{}.rss' },
  {
    host: 'feeds.simplecast.com',
    path: /^\/([\w.-]+)/,
    url: 'https://feeds.simplecast.com/{}',
    is_case_sensitive: true,
  },
  { host: 'rss.art19.com', path: /^\/([\w.-]+)/, url: 'https://rss.art19.com/{}' },
  { host: 'feeds.acast.com', path: /^\/public\/shows\/([\w.-]+)/, url: 'https://feeds.acast.com/public/shows/{}' },
  { host: 'feeds.transistor.fm', path: /^\/([\w.-]+)/, url: 'https://feeds.transistor.fm/{}' },
  { host: 's.anchor.fm', aliases: ['anchor.fm'], path: /^\/s\/(\w+)/, url: 'https://anchor.fm/s/{}/podcast/rss' },
  { host: 'feeds.libsyn.com', path: /^\/(\d+)/, url: 'https://feeds.libsyn.com/{}/rss' },
  { host: 'feeds.captivate.fm', path: /^\/([\w.-]+)/, url: 'https://feeds.captivate.fm/{}/' },
  { host: 'feeds.fireside.fm', path: /^\/([\w.-]+)/, url: 'https://feeds.fireside.fm/{}/rss' },
  { host: 'feeds.redcircle.com', path: /^\/([\w.-]+)/, url: 'https://feeds.redcircle.com/{}' },
  { host: 'feed.podbean.com', path: /^\/([\w-]+)/, url: 'https://feed.podbean.com/{}/feed.xml' },
].map((feed) => ({ channel: 'podcast', ...feed }));

export const path_platforms: PathPlatform[] = [
  ...podcast_feeds,
  {
    channel: 'website',
    host: 'medium.com',
    path: /^\/@?(?!(?:tag|p|m|search|topics|membership|about|plans|creators|me|policy|feed|_)(?:\/|$))([\w.-]+)/,
    url: 'https://{}.medium.com/',
  },
  { channel: 'newsletter', host: 'substack.com', path: /^\/(?:@|pub\/)([\w-]+)/, url: 'https://{}.substack.com/' },
  {
    channel: 'newsletter',
    host: 'buttondown.com',
    aliases: ['buttondown.email'],
    path: /^\/([\w-]+)/,
    url: 'https://buttondown.com/{}',
  },
  {
    channel: 'podcast',
    host: 'podcasts.apple.com',
    aliases: ['itunes.apple.com'],
    path: /\/podcast\/(?:[^/]+\/)?(id\d+)/,
    url: 'https://podcasts.apple.com/podcast/{}',
  },
  {
    channel: 'podcast',
    host: 'open.spotify.com',
    path: /^\/(?:intl-[\w-]+\/)?(?:embed\/)?show\/(\w+)/,
    url: 'https://open.spotify.com/show/{}',
    is_case_sensitive: true,
  },
  { channel: 'podcast', host: 'anchor.fm', path: /^\/(?!s\/)([\w-]+)/, url: 'https://anchor.fm/{}' },
  { channel: 'podcast', host: 'soundcloud.com', path: /^\/([\w-]+)/, url: 'https://soundcloud.com/{}' },
  {
    channel: 'podcast',
    host: 'spreaker.com',
    path: /^\/(?:show|podcast)\/([\w-]+)/,
    url: 'https://www.spreaker.com/show/{}',
  },
  { channel: 'podcast', host: 'shows.acast.com', path: /^\/([\w-]+)/, url: 'https://shows.acast.com/{}' },
  { channel: 'podcast', host: 'rss.com', path: /^\/podcasts\/([\w-]+)/, url: 'https://rss.com/podcasts/{}' },
  { channel: 'website', host: 'note.com', path: /^\/([\w-]+)/, url: 'https://note.com/{}' },
  { channel: 'website', host: 'dev.to', path: /^\/([\w-]+)/, url: 'https://dev.to/{}' },
  { channel: 'website', host: 'ameblo.jp', path: /^\/([\w-]+)/, url: 'https://ameblo.jp/{}/' },
  { channel: 'website', host: 'blog.naver.com', path: /^\/([\w-]+)/, url: 'https://blog.naver.com/{}' },
  {
    channel: 'website',
    host: 'sites.google.com',
    path: /^\/(?:view|site)\/([\w-]+)/,
    url: 'https://sites.google.com/view/{}',
  },
  {
    channel: 'other',
    host: 'groups.facebook.com',
    aliases: ['facebook.com'],
    path: /^\/groups\/([\w.-]+)/,
    url: 'https://www.facebook.com/groups/{}',
  },
  {
    channel: 'other',
    host: 'facebook.com',
    aliases: ['fb.com', 'fb.me'],
    path: /^\/(?:pg\/)?(?!(?:sharer|sharer\.php|share|share\.php|dialog|events|groups|pages|profile\.php|people|plugins|tr|watch|hashtag|login|login\.php|help|policies|privacy|legal|business|photo|photo\.php|story\.php|marketplace|gaming|reel|l\.php|home\.php)(?:\/|$))([\w.-]+)/,
    url: 'https://www.facebook.com/{}',
  },
  {
    channel: 'other',
    host: 'in.linkedin.com',
    aliases: ['linkedin.com'],
    path: /^\/in\/([^/]+)/,
    url: 'https://www.linkedin.com/in/{}',
  },
  {
    channel: 'other',
    host: 'company.linkedin.com',
    aliases: ['linkedin.com'],
    path: /^\/company\/([^/]+)/,
    url: 'https://www.linkedin.com/company/{}',
  },
  {
    channel: 'other',
    host: 'twitch.tv',
    path: /^\/(?!(?:directory|p|settings|downloads|videos|search|jobs)(?:\/|$))(\w+)/,
    url: 'https://www.twitch.tv/{}',
  },
  {
    channel: 'other',
    host: 'pinterest.com',
    aliases: [
      'pinterest.de',
      'pinterest.fr',
      'pinterest.co.uk',
      'pinterest.es',
      'pinterest.it',
      'pinterest.ca',
      'pinterest.at',
      'pinterest.ch',
      'pinterest.jp',
    ],
    path: /^\/(?!(?:pin|search|ideas|business|about|login|today|_)(?:\/|$))([\w-]+)/,
    url: 'https://www.pinterest.com/{}/',
  },
  {
    channel: 'other',
    host: 'patreon.com',
    path: /^\/(?:c\/|cw\/)?(?!(?:c|cw|posts|login|home|about|policy|join|user|oauth2|bePatron)(?:\/|$))([\w-]+)/,
    url: 'https://www.patreon.com/{}',
  },
  {
    channel: 'other',
    host: 't.me',
    aliases: ['telegram.me'],
    path: /^\/(?:s\/)?(?!(?:s|share|joinchat|addstickers|iv)(?:\/|$))(\w+)/,
    url: 'https://t.me/{}',
  },
  {
    channel: 'other',
    host: 'threads.net',
    aliases: ['threads.com'],
    path: /^\/@([\w.]+)/,
    url: 'https://www.threads.net/@{}',
  },
  { channel: 'other', host: 'bsky.app', path: /^\/profile\/([\w.-]+)/, url: 'https://bsky.app/profile/{}' },
  {
    channel: 'other',
    host: 'r.reddit.com',
    aliases: ['reddit.com'],
    path: /^\/r\/(\w+)/,
    url: 'https://www.reddit.com/r/{}',
  },
  {
    channel: 'other',
    host: 'user.reddit.com',
    aliases: ['reddit.com'],
    path: /^\/(?:u|user)\/([\w-]+)/,
    url: 'https://www.reddit.com/user/{}',
  },
  {
    channel: 'other',
    host: 'vk.com',
    path: /^\/(?!(?:share|share\.php|login|feed|away\.php|widget_[\w.]+)(?:\/|$))([\w.]+)/,
    url: 'https://vk.com/{}',
  },
  {
    channel: 'other',
    host: 'github.com',
    path: /^\/(?!(?:login|features|about|sponsors|topics|marketplace|orgs)(?:\/|$))([\w-]+)/,
    url: 'https://github.com/{}',
  },
];

function hostsOf(channel: Channel, ...lines: string[]): [string, Channel][] {
  return [...words(...lines)].map((host) => [host, channel]);
}

function words(...lines: string[]): ReadonlySet<string> {
  return new Set(lines.flatMap((line) => line.split(' ')).filter((word) => word !== ''));
}
