import { a, feed_link, type GoldenSite, html, mailed } from './golden.ts';

const en = (title: string, body: string, head = '') => html({ lang: 'en', title, body, head });

/** Blogs and magazines in English. */
export const blogs: GoldenSite[] = [
  {
    host: 'thedailygrind-blog.com',
    ...mailed,
    pages: {
      '/': en(
        'The Daily Grind: espresso at home',
        `<h1>Ten machines, one winner</h1><p>We pulled four hundred shots. Our pick comes from ${a('https://www.percolator.com/p/one', 'Percolator')}; you can also get it ${a('https://www.amazon.com/dp/B01?tag=grind-20', 'at Amazon')}.</p>${a('/about', 'About Lena')}${a('/contact', 'Contact')}`,
        feed_link,
      ),
      '/about': en('About', '<p>I am Lena. Write to me: lena@thedailygrind-blog.com</p>'),
      '/contact': en('Contact', '<p>info@thedailygrind-blog.com</p>'),
    },
    golden: {
      language: 'en',
      evidence: ['competitor_link percolator.com', 'affiliate_network Amazon Associates', 'keyword espresso'],
      score: [65, 85],
      addresses: ['lena@thedailygrind-blog.com', 'info@thedailygrind-blog.com'],
    },
  },
  {
    host: 'coffeeonabudget.com',
    ...mailed,
    pages: {
      '/': en(
        'Coffee on a Budget',
        `<p>Cheap kit that works. ${a('https://www.awin1.com/cread.php?awinmid=9&awinaffid=7&ued=https%3A%2F%2Fpercolator.com%2Fsale', 'Percolator sale')} and ${a('https://click.linksynergy.com/deeplink?id=a&mid=1&murl=https%3A%2F%2Fsomeshop.com', 'a mug')}.</p><footer>${a('mailto:hello@coffeeonabudget.com', 'Mail')}</footer>`,
      ),
    },
    golden: {
      language: 'en',
      evidence: ['competitor_link percolator.com', 'affiliate_network Awin', 'affiliate_network Rakuten'],
      score: [50, 70],
      addresses: ['hello@coffeeonabudget.com'],
    },
  },
  {
    host: 'quietgarden-notes.com',
    ...mailed,
    pages: {
      '/': en(
        'Quiet garden notes',
        '<p>Roses need little water in spring. I write once a month about my garden, and nothing else.</p><p>rose@quietgarden-notes.com</p>',
      ),
    },
    golden: { language: 'en', evidence: [], score: [0, 0], addresses: ['rose@quietgarden-notes.com'] },
  },
  {
    host: 'espressolab-reviews.com',
    ...mailed,
    pages: {
      '/': en(
        'Espresso Lab',
        `<p>Measured, not tasted.</p>${a('/go/machine-one', 'Machine one', 'sponsored nofollow')} ${a('/go/machine-two', 'Machine two', 'sponsored')}${a('/work-with-us', 'Work with us')}`,
      ),
      '/work-with-us': en(
        'Work with us',
        '<p>partners@espressolab-reviews.com or our editor kim.olsen@espressolab-reviews.com</p>',
      ),
    },
    golden: {
      language: 'en',
      evidence: ['affiliate_network Link of its own', 'keyword espresso'],
      score: [30, 50],
      addresses: ['kim.olsen@espressolab-reviews.com', 'partners@espressolab-reviews.com'],
    },
  },
  {
    host: 'wirednomads-travel.com',
    ...mailed,
    pages: {
      '/': en(
        'Wired Nomads',
        `<p>Trains across Europe. ${a('https://www.booking.com/hotel/x.html?aid=123', 'Our hotel')}, ${a('https://tp.st/abc', 'tickets')}.</p>${a('https://www.instagram.com/wirednomads/', 'Instagram')}<p>Sam &lt;sam@wirednomads-travel.com&gt;</p>`,
      ),
    },
    golden: {
      language: 'en',
      evidence: ['affiliate_network Booking.com', 'affiliate_network Travelpayouts'],
      score: [25, 40],
      addresses: ['sam@wirednomads-travel.com'],
    },
  },
  {
    host: 'kitchengearhq.com',
    exchangers: [],
    pages: {
      '/': en(
        'Kitchen Gear HQ',
        `<p>Pans, knives and the occasional espresso pot. ${a('https://percolator.com/', 'Percolator')} makes kettles. ${a('https://shareasale.com/r.cfm?b=1&u=2&m=3', 'Buy the pan')} ${a('https://crumbware.sjv.io/c/1/2/3', 'Buy the knife')} ${a('https://prf.hn/click/camref:1', 'Buy the board')}</p>team@kitchengearhq.com`,
      ),
    },
    golden: {
      language: 'en',
      evidence: [
        'competitor_link percolator.com',
        'affiliate_network ShareASale',
        'affiliate_network Impact',
        'affiliate_network Partnerize',
        'keyword espresso',
      ],
      score: [65, 80],
      addresses: ['team@kitchengearhq.com'],
    },
  },
  {
    host: 'saasforbakers.com',
    ...mailed,
    pages: {
      '/': en(
        'Software for bakers',
        `<p>${a('https://ordertool.com/?fpr=baker', 'Order tool')} ${a('https://posflow.com/?via=baker', 'Till')} ${a('https://grsm.io/flour', 'Accounting')}</p>${a('https://twitter.com/intent/tweet?text=x&via=baker', 'Tweet this')}<p>jo@saasforbakers.com</p>`,
      ),
    },
    golden: {
      language: 'en',
      evidence: [
        'affiliate_network FirstPromoter',
        'affiliate_network Rewardful, Tolt or Dub',
        'affiliate_network PartnerStack',
      ],
      score: [28, 40],
      addresses: ['jo@saasforbakers.com'],
    },
  },
  {
    host: 'plainreviews-weekly.com',
    ...mailed,
    pages: {
      '/': en(
        'Plain Reviews',
        `<p>Kettles this week. No links to shops, ever. We like the ${a('https://en.wikipedia.org/wiki/Espresso', 'history of espresso')}.</p>`,
      ),
      '/contact': en('Contact', 'desk@plainreviews-weekly.com'),
    },
    golden: {
      language: 'en',
      evidence: ['keyword espresso'],
      score: [8, 20],
      addresses: ['desk@plainreviews-weekly.com'],
    },
  },
  {
    host: 'amazon-without-tag.com',
    pages: {
      '/': en(
        'Reading list',
        `<p>${a('https://www.amazon.com/dp/0140449132', 'A book')}, ${a('https://www.ebay.com/itm/1', 'a lamp')}, ${a('https://www.shareasale.com/info/', 'what ShareASale is')}</p>`,
      ),
    },
    golden: { language: 'en', evidence: [], score: [0, 0], addresses: [] },
  },
  {
    host: 'mugsandmorning.com',
    ...mailed,
    pages: {
      '/': en(
        'Mugs &amp; Mornings',
        `<p>My morning with ${a('https://shop.beanworks.de/kettle?utm_source=mugs', 'Beanworks')} and a kettle by ${a('https://percolator.com/kettle', 'Percolator')}.</p>${a('https://www.youtube.com/@mugsandmorning', 'YouTube')}${a('/press', 'Media kit')}`,
        feed_link,
      ),
      '/press': en('Media kit', '<p>Rates: ads@mugsandmorning.com. I am Ada, ada@mugsandmorning.com.</p>'),
    },
    golden: {
      language: 'en',
      evidence: ['competitor_link beanworks.de', 'competitor_link percolator.com'],
      score: [42, 55],
      addresses: ['ada@mugsandmorning.com', 'ads@mugsandmorning.com'],
    },
  },
  {
    host: 'latteartschool.com',
    ...mailed,
    pages: {
      '/': en(
        'Latte art school',
        `<p>Pour better. Courses in Ghent. Ask ${a('mailto:milk@latteartschool.com?subject=Course', 'us')}.</p><p>Built by ${a('mailto:web@pixel-agency.com', 'Pixel')}</p>`,
      ),
    },
    golden: {
      language: 'en',
      evidence: [],
      score: [0, 0],
      addresses: ['milk@latteartschool.com', 'web@pixel-agency.com'],
    },
  },
  {
    host: 'moccamaster-fans.com',
    ...mailed,
    pages: {
      '/': en(
        'Fans of filter coffee',
        `<p>${a('https://rover.ebay.com/rover/1/711?campid=1', 'Spare parts')} ${a('https://geni.us/filter', 'Filters')} ${a('https://app.impact.com/login', 'we use Impact')}</p><p>Owner: moccafan.pete@gmail.com, site: hello@moccamaster-fans.com</p>`,
      ),
    },
    golden: {
      language: 'en',
      evidence: ['affiliate_network eBay Partner Network', 'affiliate_network Geniuslink'],
      score: [24, 36],
      addresses: ['hello@moccamaster-fans.com', 'moccafan.pete@gmail.com'],
    },
  },
  {
    host: 'oldforum-coffee.com',
    ...mailed,
    pages: {
      '/': `<HTML><HEAD><TITLE>Coffee board</TITLE></HEAD><BODY BGCOLOR=white><TABLE><TR><TD><FONT SIZE=2>Welcome. Everybody here talks about espresso, day and night, and that is how we like it.<TD><A HREF=http://www.percolator.com/old>old machines</A></TABLE><ADDRESS>sysop@oldforum-coffee.com</ADDRESS>`,
    },
    golden: {
      language: 'en',
      evidence: ['competitor_link percolator.com', 'keyword espresso'],
      score: [38, 55],
      addresses: ['sysop@oldforum-coffee.com'],
    },
  },
  {
    host: 'roastlog-substack-like.com',
    ...mailed,
    pages: {
      '/': en(
        'Roast Log, a newsletter',
        `<p>Every Friday. ${a('https://roastlog.substack.com/', 'Archive')} ${a('https://roastery.refersion.com/c/1', 'Roastery')} ${a('https://shop-roast.com/?rfsn=123.456', 'Beans')}</p><p>editor@roastlog-substack-like.com</p>`,
      ),
    },
    golden: {
      language: 'en',
      evidence: ['affiliate_network Refersion'],
      score: [20, 35],
      addresses: ['editor@roastlog-substack-like.com'],
    },
  },
];

/** Sites of coupons and deals. */
export const coupon_sites: GoldenSite[] = [
  {
    host: 'savvyvouchers-today.com',
    ...mailed,
    pages: {
      '/': en(
        'Voucher codes &amp; coupons today',
        `${a('/coupons/percolator', 'Percolator coupons')}${a('https://tidd.ly/a1', 'Get deal')}${a('https://www.anrdoezrs.net/click-1-2', 'Get deal')}${a('/imprint', 'Imprint')}`,
      ),
      '/imprint': en('Imprint', 'Savvy Ltd, legal@savvyvouchers-today.com, deals@savvyvouchers-today.com'),
    },
    golden: {
      language: 'en',
      evidence: ['coupon_page /', 'coupon_page /coupons/percolator', 'affiliate_network Awin', 'affiliate_network CJ'],
      score: [34, 50],
      addresses: ['deals@savvyvouchers-today.com', 'legal@savvyvouchers-today.com'],
    },
  },
  {
    host: 'promo-percolator-deals.com',
    pages: {
      '/': en(
        'Deals of the day',
        `<p>Percolator promo code: SAVE10. ${a('https://percolator.com/?aff=55', 'Use it')}</p>${a('/promo-codes/', 'All promo codes')}`,
      ),
    },
    golden: {
      language: 'en',
      evidence: ['competitor_link percolator.com', 'affiliate_network Lemon Squeezy', 'coupon_page /promo-codes/'],
      score: [58, 70],
      addresses: [],
    },
  },
  {
    host: 'gutscheinhamster-shop.de',
    ...mailed,
    pages: {
      '/': html({
        lang: 'de',
        title: 'Gutscheine und Rabattcodes',
        body: `${a('https://www.awin1.com/awclick.php?mid=1&id=2', 'Zum Shop')}${a('https://www.adcell.de/click.php?bid=1', 'Zum Shop')}${a('/impressum', 'Impressum')}`,
      }),
      '/impressum': html({
        lang: 'de',
        title: 'Impressum',
        body: 'Hamster GmbH, redaktion (at) gutscheinhamster-shop (punkt) de',
      }),
    },
    golden: {
      language: 'de',
      evidence: ['coupon_page /', 'affiliate_network Awin', 'affiliate_network ADCELL'],
      score: [32, 50],
      addresses: ['redaktion@gutscheinhamster-shop.de'],
    },
  },
  {
    host: 'codespromo-malins.fr',
    ...mailed,
    pages: {
      '/': html({
        lang: 'fr',
        title: 'Codes promo malins',
        body: `${a('https://lacafetiere.fr/promo', 'La Cafetière')}${a('https://action.metaffiliation.com/trk.php?x', 'Voir')}${a('/nous-ecrire', 'Nous écrire')}`,
      }),
      '/nous-ecrire': html({ lang: 'fr', title: 'Contact', body: 'bonjour [arobase] codespromo-malins [point] fr' }),
    },
    golden: {
      language: 'fr',
      evidence: ['coupon_page /', 'competitor_link lacafetiere.fr', 'affiliate_network Kwanko'],
      score: [55, 70],
      addresses: ['bonjour@codespromo-malins.fr'],
    },
  },
  {
    host: 'cupones-listos.es',
    ...mailed,
    pages: {
      '/': html({
        lang: 'es',
        title: 'Cupones y códigos de descuento',
        body: `${a('https://clk.tradedoubler.com/click?p=1&a=2&g=3', 'Ver')}<p>hola@cupones-listos.es</p>`,
      }),
    },
    golden: {
      language: 'es',
      evidence: ['coupon_page /', 'affiliate_network Tradedoubler'],
      score: [30, 42],
      addresses: ['hola@cupones-listos.es'],
    },
  },
  {
    host: 'codicisconto-subito.it',
    pages: {
      '/': html({
        lang: 'it',
        title: 'Codici sconto',
        body: `${a('https://www.moka-house.it/offerte', 'Moka House')}${a('https://track.webgains.com/click.html?wgid=1', 'Vai')}`,
      }),
    },
    golden: {
      language: 'it',
      evidence: ['coupon_page /', 'competitor_link moka-house.it', 'affiliate_network Webgains'],
      score: [55, 70],
      addresses: [],
    },
  },
  {
    host: 'cupombrasil-hoje.com.br',
    ...mailed,
    pages: {
      '/': html({
        lang: 'pt-BR',
        title: 'Cupom de desconto hoje',
        body: `${a('https://redir.lomadee.com/v2/x', 'Pegar')}<p>fale@cupombrasil-hoje.com.br</p>`,
      }),
    },
    golden: {
      language: 'pt',
      evidence: ['coupon_page /', 'affiliate_network Lomadee'],
      score: [30, 42],
      addresses: ['fale@cupombrasil-hoje.com.br'],
    },
  },
  {
    host: 'kortingsjager-nu.nl',
    ...mailed,
    pages: {
      '/': html({
        lang: 'nl',
        title: 'Kortingscodes',
        body: `${a('https://tc.tradetracker.net/?c=1&m=2', 'Bekijk')}${a('https://ds1.nl/c/?si=1', 'Bekijk')}<p>post@kortingsjager-nu.nl</p>`,
      }),
    },
    golden: {
      language: 'nl',
      evidence: ['coupon_page /', 'affiliate_network TradeTracker', 'affiliate_network Daisycon'],
      score: [34, 46],
      addresses: ['post@kortingsjager-nu.nl'],
    },
  },
  {
    host: 'giftshop-cards.com',
    ...mailed,
    pages: {
      '/': en(
        'Gift vouchers for every taste',
        `<p>Our gift vouchers are printed on heavy paper.</p>${a('/gift-vouchers', 'Gift vouchers')}<p>shop@giftshop-cards.com</p>`,
      ),
    },
    golden: { language: 'en', evidence: [], score: [0, 0], addresses: ['shop@giftshop-cards.com'] },
  },
  {
    host: 'checkout-coupon-box.com',
    pages: { '/': en('Lamps and shades', '<p>Have a coupon? Enter it at checkout.</p>') },
    golden: { language: 'en', evidence: [], score: [0, 0], addresses: [] },
  },
];
