/** Hosts that many publishers share, so that the host alone does not name one. All of it is data: hosts are in lower case. */
import type { z } from 'zod';
import type { channel } from '../../events/fields.ts';

export type Channel = z.infer<typeof channel>;
/** Channels whose prospects are accounts of one platform. */
export type AccountChannel = 'youtube' | 'instagram' | 'tiktok' | 'x';

/**
 * A platform with the account in the path: `name` is the form of an account's name, and `own_pages` are first parts of a path that are the
 * platform's own pages, never an account.
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
    'tistory.com blog.hu blogg.se altervista.org mozello.com site123.me blogspot.com gumroad.com bandcamp.com',
    'deviantart.com notion.site bigcartel.com mykajabi.com teachable.com thinkific.com podia.com komi.io circle.so',
    'livedoor.blog blog.jp muragon.com exblog.jp cocolog-nifty.com myportfolio.com',
    'journoportfolio.com format.com pixieset.com sellfy.store lemonsqueezy.com mn.co weblium.site mystrikingly.com',
    'contently.com fourthwall.com artstation.com sellfy.com hashnode.com',
  ),
]);

/** Names below those domains that are the platform itself. */
export const platform_names = words(
  'www m mobile about help support blog api cdn app apps admin mail login signup account accounts static assets open',
  'feeds feed rss status developers developer press jobs careers on web',
);

/**
 * A platform whose path names the publisher. The key is the part that `path` matches, below `host`: john of facebook.com is
 * `john.facebook.com`. `url` gives the address back. `aliases` are other hosts of the same accounts.
 */
export type PathPlatform = {
  channel: Channel;
  host: string;
  aliases?: string[];
  path: RegExp;
  url: string;
  /** Names that differ by letter case alone are of two accounts. */
  is_case_sensitive?: boolean;
  /** `path` is matched against the path and what follows it from `?`. */
  with_query?: boolean;
};

function hostsOf(channel: Channel, ...lines: string[]): [string, Channel][] {
  return [...words(...lines)].map((host) => [host, channel]);
}

export function words(...lines: string[]): ReadonlySet<string> {
  return new Set(lines.flatMap((line) => line.split(' ')).filter((word) => word !== ''));
}
