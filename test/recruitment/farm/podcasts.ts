import { a, feed_link, type GoldenSite, html, mailed } from './golden.ts';

const rss = (channel: string, type = 'application/rss+xml') => ({
  type,
  body: `<?xml version="1.0" encoding="UTF-8"?><rss version="2.0" xmlns:itunes="http://www.itunes.com/dtds/podcast-1.0.dtd"><channel>${channel}</channel></rss>`,
});
const episode = (title: string, notes: string) =>
  `<item><title>${title}</title><description><![CDATA[${notes}]]></description><enclosure url="https://cdn.host.com/1.mp3" type="audio/mpeg" length="1"/></item>`;

/** Podcasts, by their sites and by their feeds. */
export const podcasts: GoldenSite[] = [
  {
    host: 'beansandbytes-cast.com',
    ...mailed,
    pages: {
      '/': html({
        lang: 'en',
        title: 'Beans and Bytes, a podcast',
        head: feed_link,
        body: `<p>Two engineers and an espresso.</p>${a('https://podcasts.apple.com/us/podcast/beans/id1234567', 'Apple')}${a('https://open.spotify.com/show/4rOoJ6Egrf8K2IrywzwOMk', 'Spotify')}${a('https://percolator.com/beans', 'Our sponsor')}${a('/contact', 'Contact')}`,
      }),
      '/feed': rss(`<title>Beans and Bytes</title>${episode('One', 'x')}`),
      '/contact': html({ lang: 'en', title: 'Contact', body: 'hosts AT beansandbytes-cast DOT com' }),
    },
    golden: {
      language: 'en',
      evidence: ['competitor_link percolator.com', 'keyword espresso'],
      score: [45, 60],
      addresses: ['hosts@beansandbytes-cast.com'],
    },
  },
  {
    host: 'feeds.morningcup-cast.com',
    path: '/show.xml',
    ...mailed,
    pages: {
      '/show.xml': rss(
        `<title>Morning Cup</title><link>https://morningcup-cast.com</link><description>Espresso and news for early people, every single morning</description><language>en-us</language><itunes:owner><itunes:email>nora@morningcup-cast.com</itunes:email></itunes:owner>${episode('Grinders', `Today: ${a('https://amzn.to/3xyz', 'the grinder')}, ${a('https://www.percolator.com/grinder', 'another')}`)}`,
      ),
    },
    golden: {
      language: 'en',
      evidence: ['affiliate_network Amazon Associates', 'competitor_link percolator.com', 'keyword espresso'],
      score: [60, 78],
      addresses: ['nora@morningcup-cast.com'],
    },
  },
  {
    host: 'kaffeeklatsch-radio.de',
    path: '/feed',
    pages: {
      '/feed': rss(
        `<title>Kaffeeklatsch</title><description>Der Podcast über jede Kaffeemaschine, die wir finden können</description><language>de</language>${episode('Folge 1', `Unser Partner: ${a('https://beanworks.de/klatsch', 'Beanworks')}`)}`,
        'text/xml; charset=utf-8',
      ),
    },
    golden: { language: 'de', evidence: ['competitor_link beanworks.de', 'keyword Kaffeemaschine'], score: [42, 60] },
  },
  {
    host: 'atomblog-notes.com',
    path: '/atom.xml',
    pages: {
      '/atom.xml': {
        type: 'application/atom+xml',
        body: '<feed xmlns="http://www.w3.org/2005/Atom" xml:lang="en"><title>Notes on pressure</title><subtitle>Nine bars of espresso and why they matter to you</subtitle><link href="https://atomblog-notes.com/"/><entry><title>One</title><link href="/1"/><content type="html">&lt;a href="https://pxf.io/x"&gt;valve&lt;/a&gt; &lt;a href="https://valves.pxf.io/c/1"&gt;valve&lt;/a&gt;</content></entry></feed>',
      },
    },
    golden: { language: 'en', evidence: ['affiliate_network Impact', 'keyword espresso'], score: [30, 45] },
  },
  {
    host: 'silenthours-pod.com',
    ...mailed,
    pages: {
      '/': html({
        lang: 'en',
        title: 'Silent Hours',
        head: feed_link,
        body: '<p>Stories to fall asleep to. New ones on Sunday.</p><p>Say hello: <a href="mailto:mia.berg@silenthours-pod.com">mia.berg@silenthours-pod.com</a></p>',
      }),
    },
    golden: { language: 'en', evidence: [], score: [0, 0], addresses: ['mia.berg@silenthours-pod.com'] },
  },
  {
    host: 'cafe-con-ciencia.es',
    ...mailed,
    pages: {
      '/': html({
        lang: 'es',
        title: 'Café con ciencia: el podcast',
        head: feed_link,
        body: `<p>Hoy: qué cafetera compra un físico. ${a('https://www.amazon.es/dp/B0?tag=ciencia-21', 'Esta')}.</p>${a('/contacto', 'Contacto')}`,
      }),
      '/contacto': html({ lang: 'es', title: 'Contacto', body: '<p>laura (arroba) cafe-con-ciencia (punto) es</p>' }),
    },
    golden: {
      language: 'es',
      evidence: ['affiliate_network Amazon Associates', 'keyword cafetera'],
      score: [32, 48],
      addresses: ['laura@cafe-con-ciencia.es'],
    },
  },
  {
    host: 'sitemap-only.com',
    path: '/sitemap.xml',
    pages: {
      '/sitemap.xml': {
        type: 'application/xml',
        body: '<urlset><url><loc>https://sitemap-only.com/</loc></url></urlset>',
      },
    },
    golden: { outcome: 'not_html' },
  },
  {
    host: 'jsonfeed-pod.com',
    path: '/feed.json',
    pages: { '/feed.json': { type: 'application/feed+json', body: '{"title":"x"}' } },
    golden: { outcome: 'not_html' },
  },
];
