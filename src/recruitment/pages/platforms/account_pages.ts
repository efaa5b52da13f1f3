/** Platforms whose accounts are at `<host>/<before><name>`, as data. */
import { type Channel, type PathPlatform, words } from './platforms.ts';

/** `linktr.ee/ann`, `linktr.ee/@ann`. */
const link_pages = words(
  'linktr.ee beacons.ai beacons.page bio.link bio.site bio.fm lnk.bio allmylinks.com solo.to taplink.cc taplink.at hoo.be msha.ke',
  'snipfeed.co stan.store campsite.bio campsite.to linkin.bio likeshop.me linkr.bio link.me direct.me pillar.io many.link',
  'manylink.co linkpop.com koji.to withkoji.com biolinky.co contactin.bio tap.bio url.bio linkfly.to flow.page znap.link',
  'magic.ly heylink.me instabio.cc linkinprofile.com linkgenie.co shor.by lit.link potofu.me about.me linkbio.co',
  'lynx.bio ayo.so bento.me linkmix.co fanlink.to ffm.bio hypel.ink liinks.co',
);
/** Shops, portfolios, places to write and to be paid, where the first part of the path is the account. */
const sites = words(
  'ko-fi.com buymeacoffee.com liberapay.com payhip.com sellfy.com shopmy.us benable.com depop.com fiverr.com society6.com',
  'behance.net dribbble.com artstation.com codepen.io letterboxd.com thingiverse.com velog.io brunch.co.kr qiita.com zenn.dev',
  'dzen.ru teletype.in boosty.to smartstore.naver.com post.naver.com blog.goo.ne.jp plaza.rakuten.co.jp blog.livedoor.jp room.rakuten.co.jp',
  'muckrack.com contently.com clippings.me hashnode.com zhuanlan.zhihu.com fourthwall.com unsplash.com printables.com',
  'geocities.ws users.rcn.com members.tripod.com',
);
/** Communities and networks, likewise. */
const networks = words(
  'kick.com vimeo.com dailymotion.com odysee.com mixcloud.com audiomack.com ok.ru skool.com meetup.com cafe.naver.com',
  'gitlab.com kaggle.com producthunt.com onlyfans.com fansly.com subscribestar.com gab.com minds.com truthsocial.com dlive.tv trovo.live',
  'lemon8-app.com',
);
/** First parts of paths that are the platform's own, whichever it is. */
export const own_pages =
  'a|about|account|accounts|admin|album|api|app|apps|artwork|assets|auth|blog|blogs|business|careers|cart|categories|category|channels|checkout|code|community|competitions|contact|cookies|creators|dashboard|datasets|developers|discover|download|downloads|explore|faq|features|feed|feeds|film|films|find|forgot-password|gallery|group|groups|guidelines|hashtag|help|home|id|imprint|jobs|join|legal|list|login|logout|market|marketplace|messages|model|models|news|newsfeed|notifications|ondemand|p|pen|photos|playlist|posts|press|pricing|privacy|products|profile|projects|register|s|search|settings|share|shop|shots|sign-in|sign-up|signin|signup|sitemap\\.xml|song|static|store|support|tag|tags|team|templates|terms|thing|things|topics|tos|trending|tv|u|user|users|video|videos|viewer|watch|www';
const firstPart = (others = ''): RegExp => new RegExp(`^/@?(?!(?:${own_pages}${others})(?:[/?:]|$))([\\w.-]+)`, 'i');
const first_part = firstPart();
/** Hosts on which a number is a video. */
const first_parts: Record<string, RegExp> = { 'vimeo.com': firstPart('|\\d+') };
/** Hosts that show an account at a subdomain. */
const in_host = words('contently.com fourthwall.com');

/**
 * Path prefixes that mark an account: the host, and one or several (`|`) prefixes. A space separates accounts with names of their own: the
 * user ann is not the shop ann.
 */
const after: [channel: Channel, host: string, before: string, form?: string][] = [
  ['website', 'etsy.com', 'shop/ people/'],
  ['website', 'shopltk.com', 'explore/'],
  ['website', 'liketoknow.it', ''],
  ['website', 'poshmark.com', 'closet/'],
  ['website', 'whatnot.com', 'user/'],
  ['website', 'redbubble.com', 'people/'],
  ['website', 'zazzle.com', 'store/|mbr/'],
  ['website', 'teespring.com', 'stores/'],
  ['website', 'udemy.com', 'user/'],
  ['website', 'skillshare.com', 'profile/ user/|r/user/'],
  ['website', 'gofundme.com', 'u/'],
  ['website', 'rumble.com', 'c/ user/'],
  ['website', 'flickr.com', 'photos/|people/'],
  ['website', '500px.com', 'p/'],
  ['website', 'instructables.com', 'member/'],
  ['website', 'makerworld.com', '@'],
  ['website', 'cookpad.com', 'users/', '\\d+'],
  ['website', 'hackernoon.com', 'u/'],
  ['website', 'vc.ru', 'u/|id'],
  ['website', 'habr.com', 'users/'],
  ['other', 'goodreads.com', 'user/show/ author/show/'],
  ['other', 'wattpad.com', 'user/'],
  ['other', 'last.fm', 'user/'],
  ['other', 'strava.com', 'athletes/ pros/'],
  ['other', 'quora.com', 'profile/'],
  ['other', 'researchgate.net', 'profile/'],
  ['other', 'snapchat.com', 'add/|@'],
  ['other', 'steamcommunity.com', 'id/ profiles/'],
  ['other', 'discord.gg', ''],
  ['other', 'discord.com', 'invite/'],
  ['other', 'eventbrite.com', 'o/'],
  ['other', 'space.bilibili.com', '', '\\d+'],
  ['other', 'bitchute.com', 'channel/ profile/'],
  ['other', 'zhihu.com', 'people/ org/'],
  ['other', 'douban.com', 'people/'],
  ['other', 'xiaohongshu.com', 'user/profile/'],
  ['other', 'douyin.com', 'user/'],
  ['other', 'mercari.com', 'u/'],
  ['other', 'weibo.com', '|u/|n/'],
  ['other', 'stackoverflow.com', 'users/', '\\d+'],
  ['other', 'upwork.com', 'freelancers/~|freelancers/'],
];
const case_sensitive = words('discord.gg discord.com bitchute.com douyin.com');
/** A storefront of one country is not that of another. */
const marketplaces: [host: string, tops: string][] = [
  ['amazon', 'com co.uk de fr it es ca com.au in co.jp com.br com.mx nl se pl com.tr ae sg'],
  ['ebay', 'com co.uk de fr it es ca com.au nl at ch ie pl'],
];
const stores: Record<string, string> = { amazon: 'shop/ stores/author/ stores/page/', ebay: 'str/ usr/' };

const ofFirstPart = (channel: Channel, hosts: ReadonlySet<string>): PathPlatform[] =>
  [...hosts].map((host) => ({
    ...{ channel, host, path: first_parts[host] ?? first_part },
    url: in_host.has(host) ? `https://{}.${host}/` : `https://${host}/{}`,
  }));

const longestFirst = (ways: string): string =>
  ways
    .split('|')
    .toSorted((one, other) => other.length - one.length)
    .join('|');

/** A language may stand before it: `/de/shop/ann`. */
const ofPart = (channel: Channel, host: string, before: string, form = '[\\w.-]+'): PathPlatform[] =>
  before.split(' ').map((ways, nth) => {
    const [first = ''] = ways.split('|');
    const own = nth === 0 ? { host } : { host: `${first.split('/').at(-2)}.${host}`, aliases: [host] };
    return {
      ...{ channel, ...own, url: `https://${host}/${first}{}`, is_case_sensitive: case_sensitive.has(host) },
      path: new RegExp(`^/(?:[a-z]{2}(?:-[a-z]{2})?/)?(?:${longestFirst(ways)})(${form})`, 'i'),
    };
  });

/** Rules of `after` come before those of the first part at the same host. */
export const account_pages: PathPlatform[] = [
  ...after.flatMap((each) => ofPart(...each)),
  ...marketplaces.flatMap(([name, tops]) =>
    tops.split(' ').flatMap((top) => ofPart('website', `${name}.${top}`, stores[name] as string)),
  ),
  ...ofFirstPart('website', link_pages),
  ...ofFirstPart('website', sites),
  ...ofFirstPart('other', networks),
];
