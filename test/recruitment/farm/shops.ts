import { a, type GoldenSite, html, mailed } from './golden.ts';

const nothing = { evidence: [], score: [0, 0] as [number, number] };
const shop = (lang: string, title: string, body: string) => html({ lang, title, body });

/** Shops: the brand's, its competitors', and others. */
export const shops: GoldenSite[] = [
  {
    host: 'brewly.com',
    pages: {
      '/': shop('en', 'Brewly espresso', `${a('https://percolator.com/', 'not as good')}${a('/coupons', 'Coupons')}`),
    },
    golden: { language: 'en', ...nothing },
  },
  {
    host: 'blog.brewly.com',
    pages: { '/': shop('en', 'Brewly blog', `espresso ${a('https://amzn.to/x')}`) },
    golden: { language: 'en', ...nothing },
  },
  {
    host: 'percolator.com',
    pages: {
      '/': shop(
        'en',
        'Percolator',
        `<p>espresso</p>${a('/affiliates', 'Affiliates')}${a('https://beanworks.de/', 'x')}`,
      ),
    },
    golden: { language: 'en', ...nothing },
  },
  {
    host: 'www.beanworks.de',
    pages: { '/': shop('de', 'Beanworks Kaffeemaschine', `${a('https://awin1.com/x', 'x')}`) },
    golden: { language: 'de', ...nothing },
  },
  {
    host: 'shop.moka-house.it',
    pages: { '/': shop('it', 'Moka House', 'macchina da caffè') },
    golden: { language: 'it', ...nothing },
  },
  {
    host: 'notpercolator.com',
    pages: {
      '/': shop(
        'en',
        'Steel pipes',
        `${a('https://notpercolator.com.evil.com/', 'x')}${a('https://mypercolator.com/', 'y')}`,
      ),
    },
    golden: { language: 'en', ...nothing },
  },
  {
    host: 'teashop-lane.com',
    ...mailed,
    pages: {
      '/': shop(
        'en',
        'Tea Shop Lane',
        `<p>Green, black, white. No espresso here!</p>${a('/gift-cards', 'Gift cards')}<p>orders@teashop-lane.com, owner: priya@teashop-lane.com</p>`,
      ),
    },
    golden: {
      language: 'en',
      evidence: ['keyword espresso'],
      score: [8, 16],
      addresses: ['priya@teashop-lane.com', 'orders@teashop-lane.com'],
    },
  },
  {
    host: 'usedmachines-market.com',
    ...mailed,
    pages: {
      '/': shop(
        'en',
        'Used machines',
        `<p>Serviced. ${a('https://percolator.com/parts', 'Parts')} ${a('https://lacafetiere.fr/pieces', 'pièces')} ${a('https://beanworks.de/teile', 'Teile')}</p>`,
      ),
      '/contact': shop('en', 'Contact', 'sales@usedmachines-market.com'),
    },
    golden: {
      language: 'en',
      evidence: ['competitor_link percolator.com', 'competitor_link lacafetiere.fr', 'competitor_link beanworks.de'],
      score: [46, 56],
      addresses: ['sales@usedmachines-market.com'],
    },
  },
  {
    host: 'pressroom-agency.com',
    ...mailed,
    pages: {
      '/': shop(
        'en',
        'Agency',
        `<p>We place links.</p>${a('https://percolator.com/?irclickid=abc', 'Client')}${a('/media-kit', 'Media kit')}`,
      ),
      '/media-kit': shop('en', 'Media kit', 'media@pressroom-agency.com'),
    },
    golden: {
      language: 'en',
      evidence: ['competitor_link percolator.com', 'affiliate_network Impact'],
      score: [50, 60],
      addresses: ['media@pressroom-agency.com'],
    },
  },
];
