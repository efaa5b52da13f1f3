/**
 * Affiliate networks and the software of affiliate programs, by what their links look like. Data: `hosts` are domains, with all names below
 * them, that serve tracking links alone; where people visit the host too, `only` says which of its addresses are tracking links.
 */

export interface Network {
  name: string;
  hosts: string[];
  /** Matched with path and query. */
  only?: RegExp;
}

export const networks: Network[] = [
  network('Awin', 'awin1.com zenaps.com tidd.ly webmasterplan.com ad.zanox.com'),
  network(
    'CJ',
    'anrdoezrs.net dpbolvw.net jdoqocy.com kqzyfj.com tkqlhce.com qksrv.net emjcd.com ftjcfx.com lduhtrp.net awltovhc.com afcyhf.com tqlkg.com yceml.net apmebf.com cj.dotomi.com',
  ),
  network(
    'Impact',
    'sjv.io pxf.io ojrq.net evyy.net 7eer.net ijrn.net uikc.net goto.walmart.com goto.target.com 1.envato.market',
  ),
  network('PartnerStack', 'grsm.io partnerlinks.io'),
  network('ShareASale', 'shareasale-analytics.com shrsl.com'),
  network('ShareASale', 'shareasale.com', /^\/(?:r|u|m-pr)\.cfm/i),
  network('Rakuten', 'linksynergy.com click.linksynergy.com hb.afl.rakuten.co.jp a.r10.to'),
  network('Amazon Associates', 'amzn.to amzn.eu amzn.asia'),
  network('Digistore24', 'checkout-ds24.com'),
  network('Digistore24', 'digistore24.com', /^\/(?:redir|content|product\/\d+\/[^/?]+)\b|[?&]aff=/i),
  network('ClickBank', 'hop.clickbank.net'),
  network('Tradedoubler', 'tradedoubler.com', /^\/click|[?&(;]a[(=]\d/i),
  network('Partnerize', 'prf.hn pntra.com pntrac.com pntrs.com gopjn.com pjatr.com pjtra.com'),
  network('Skimlinks', 'skimresources.com redirectingat.com fave.co'),
  network('Sovrn', 'viglink.com sovrn.co'),
  network('TradeTracker', 'tc.tradetracker.net ti.tradetracker.net'),
  network('Daisycon', 'ds1.nl lt45.net dt51.net jf79.net fr135.net ndt5.net at19.net bdt9.net glp8.net rkn3.net'),
  network('Belboon', 'belboon.net to.belboon.com janus.r.jakuli.com'),
  network('financeAds', 'financeads.net'),
  network('ADCELL', 't.adcell.com'),
  network('ADCELL', 'adcell.de', /^\/(?:click\.php|promotion\/click)/i),
  network('Webgains', 'track.webgains.com'),
  network('Effiliation', 'track.effiliation.com'),
  network('Kwanko', 'metaffiliation.com'),
  network('Affilae', 'lb.affilae.com'),
  network('Adtraction', 'track.adtraction.com'),
  network('Adrecord', 'click.adrecord.com'),
  network('Adservice', 'online.adservicemedia.dk'),
  network('Partner-ads', 'partner-ads.com', /klikbanner|reklame/i),
  network('Commission Factory', 'cfjump.com'),
  network('Optimise', 'clk.omgt1.com clk.omgt3.com clk.omgt4.com clk.omgt5.com'),
  network('FlexOffers', 'flexlinkspro.com flexlinks.com'),
  network('Admitad', 'ad.admitad.com alitems.com alitems.co lenkmio.com'),
  network('AliExpress', 's.click.aliexpress.com'),
  network('2Performant', 'event.2performant.com'),
  network('Profitshare', 'l.profitshare.ro'),
  network('Dognet', 'go.dognet.com login.dognet.sk'),
  network('eHUB', 'ehub.cz', /^\/system\/scripts\/click/i),
  network('Linkwise', 'go.linkwi.se'),
  network('Convertiser', 'converti.se'),
  network('webePartners', 'webep1.com'),
  network('A8.net', 'px.a8.net'),
  network('ValueCommerce', 'ck.jp.ap.valuecommerce.com'),
  network('AccessTrade', 'h.accesstrade.net'),
  network('Moshimo', 'af.moshimo.com'),
  network('Coupang Partners', 'link.coupang.com'),
  network('Involve Asia', 'invol.co invl.io'),
  network('Shopee', 'shope.ee'),
  network('Cuelinks', 'linksredirect.com clnk.in'),
  network('EarnKaro', 'ekaro.in'),
  network('Lomadee', 'redir.lomadee.com'),
  network('Hotmart', 'go.hotmart.com'),
  network('Monetizze', 'app.monetizze.com.br', /^\/r\//i),
  network('JVZoo', 'jvz1.com jvz2.com jvz3.com jvz4.com jvz5.com jvz6.com jvz7.com jvz8.com'),
  network('WarriorPlus', 'warriorplus.com', /^\/o2\/a\//i),
  network('Gumroad', 'gumroad.com', /^\/a\/\d/i),
  network('ThriveCart', 'thrivecart.com', /\/partner\//i),
  network('Tune', 'go2cloud.org'),
  network('Ambassador', 'mbsy.co'),
  network('LTK', 'rstyle.me liketk.it liketoknow.it'),
  network('ShopMy', 'go.shopmy.us'),
  network('MagicLinks', 'magik.ly'),
  network('Howl', 'shop-links.co howl.me'),
  network('Geniuslink', 'geni.us'),
  network('eBay Partner Network', 'rover.ebay.com'),
  network('Travelpayouts', 'tp.st tp.media travelpayouts.com'),
  network('Fiverr', 'go.fiverr.com'),
  network('Dub', 'refer.dub.co'),
  network('GoAffPro', 'goaffpro.com'),
  network('Refersion', 'rfsn.io'),
];

/** Impact gives each program a host of the form `name.i123456.net`. */
export const impact_host = /(?:^|\.)i\d{5,7}\.net$/;

/** Query parameters that mark a link of a program on its own host. `host` restricts marks that prove nothing alone. */
export const marks: { network: string; query: RegExp; host?: RegExp }[] = [
  { network: 'Amazon Associates', host: /(?:^|\.)amazon\.[a-z.]{2,6}$/, query: /[?&]tag=[\w-]+-\d{2}\b/i },
  { network: 'eBay Partner Network', host: /(?:^|\.)ebay\.[a-z.]{2,6}$/, query: /[?&]campid=\d/i },
  { network: 'Booking.com', host: /(?:^|\.)booking\.com$/, query: /[?&]aid=\d/i },
  { network: 'GetYourGuide', host: /(?:^|\.)getyourguide\.[a-z.]{2,6}$/, query: /[?&]partner_id=\w/i },
  { network: 'Viator', host: /(?:^|\.)viator\.com$/, query: /[?&]pid=\w/i },
  { network: 'Flipkart', host: /(?:^|\.)flipkart\.com$/, query: /[?&]affid=\w/i },
  { network: 'Awin', query: /[?&]awc=\d+_/i },
  { network: 'Impact', query: /[?&](?:irclickid|irgwc)=\w/i },
  { network: 'Rakuten', query: /[?&]ran(?:MID|EAID|SiteID)=\w/i },
  { network: 'PartnerStack', query: /[?&](?:pscd|ps_partner_key|ps_xid)=\w/i },
  { network: 'FirstPromoter', query: /[?&](?:fpr|fp_ref)=\w/i },
  { network: 'Refersion', query: /[?&]rfsn=\d/i },
  { network: 'UpPromote', query: /[?&]sca_ref=\w/i },
  { network: 'BixGrow', query: /[?&]bg_ref=\w/i },
  { network: 'Post Affiliate Pro', query: /[?&]a_aid=\w/i },
  { network: 'Tapfiliate', query: /[?&]tap_a=\w/i },
  { network: 'LeadDyno', query: /[?&]afmc=\w/i },
  { network: 'Ambassador', query: /[?&]mbsy=\w/i },
  { network: 'Teachable', query: /[?&]affcode=\w/i },
  { network: 'Tune', query: /^[^?]*\/aff_c\?.*offer_id=\d/i },
  { network: 'iDevAffiliate', query: /\/idevaffiliate\.php\?/i },
  { network: 'Everflow', query: /[?&](?:affid|aff_id)=\w/i },
  { network: 'Lemon Squeezy', query: /[?&]aff=\w/i },
  // Three vendors share this mark.
  { network: 'Rewardful, Tolt or Dub', query: /[?&]via=[\w-]/i },
];

/** Hosts on which `via` and the like mean something else. */
export const hosts_without_marks = new Set(
  'x.com twitter.com facebook.com linkedin.com pinterest.com reddit.com t.me telegram.me tumblr.com whatsapp.com wa.me youtube.com instagram.com tiktok.com github.com google.com'.split(
    ' ',
  ),
);

/** Paths behind which pages hide such links: /go/shop, /recommends/shop. They count only together with `rel`. */
export const cloaked_path =
  /^\/(?:go|goto|out|recommends?|recommended|refer|visit|aff|affiliate|deal|empfehlung|partner|redirect|exit|get|l|link|jump|click)\/[\w-]/i;

function network(name: string, hosts: string, only?: RegExp): Network {
  return { name, hosts: hosts.split(' '), ...(only && { only }) };
}
