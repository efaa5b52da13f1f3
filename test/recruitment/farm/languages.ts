import { a, feed_link, type GoldenSite, html, mailed } from './golden.ts';

/** A blog in its language that links a shop through a network and has a contact page; and a quiet page that does not say its language. */
function pair(
  [language, host, quiet_host]: [string, string, string],
  blog: { title: string; text: string; link: string; contact: string; contact_path: string; spelled: string },
  quiet: string,
  golden: { evidence: string[]; score: [number, number]; email: string },
): GoldenSite[] {
  return [
    {
      host,
      ...mailed,
      pages: {
        '/': html({
          lang: language,
          title: blog.title,
          head: feed_link,
          body: `<p>${blog.text}</p>${a(blog.link)}${a(blog.contact_path, blog.contact)}`,
        }),
        [blog.contact_path]: html({ lang: language, title: blog.contact, body: `<p>${blog.spelled}</p>` }),
      },
      golden: { language, evidence: golden.evidence, score: golden.score, addresses: [golden.email] },
    },
    {
      host: quiet_host,
      pages: { '/': html({ title: '', body: `<p>${quiet}</p>` }) },
      golden: { language, evidence: [], score: [0, 0], addresses: [] },
    },
  ];
}

/** Ten languages. */
export const languages: GoldenSite[] = [
  ...pair(
    ['en', 'bettermornings-blog.co.uk', 'quietpage-one.co.uk'],
    {
      title: 'Better mornings',
      text: 'An espresso before the school run.',
      link: 'https://www.amazon.co.uk/dp/B0?tag=morn-21',
      contact: 'Get in touch',
      contact_path: '/hello',
      spelled: 'emma at bettermornings-blog dot co dot uk',
    },
    'We walk the dogs along the canal every evening, and then we write about the birds that we have seen.',
    {
      evidence: ['affiliate_network Amazon Associates', 'keyword espresso'],
      score: [30, 42],
      email: 'emma@bettermornings-blog.co.uk',
    },
  ),
  ...pair(
    ['de', 'kaffeehausblog-wien.at', 'stilleseite-eins.de'],
    {
      title: 'Kaffeehausblog',
      text: 'Welche Kaffeemaschine passt in eine kleine Küche?',
      link: 'https://www.beanworks.de/mini',
      contact: 'Impressum',
      contact_path: '/impressum.html',
      spelled: 'Sophie Huber, sophie.huber [ät] kaffeehausblog-wien [punkt] at',
    },
    'Wir gehen jeden Abend am Fluss spazieren und schreiben danach über die Vögel, die wir gesehen haben.',
    {
      evidence: ['competitor_link beanworks.de', 'keyword Kaffeemaschine'],
      score: [42, 55],
      email: 'sophie.huber@kaffeehausblog-wien.at',
    },
  ),
  ...pair(
    ['fr', 'petitcafe-du-matin.fr', 'pagecalme-une.fr'],
    {
      title: 'Le petit café du matin',
      text: 'Quelle cafetière choisir quand on vit seul ?',
      link: 'https://lacafetiere.fr/?utm=petit',
      contact: 'Contactez-moi',
      contact_path: '/contact',
      spelled: 'claire (arobase) petitcafe-du-matin (point) fr',
    },
    'Nous marchons chaque soir le long du canal et nous écrivons ensuite sur les oiseaux que nous avons vus.',
    {
      evidence: ['competitor_link lacafetiere.fr', 'keyword cafetière'],
      score: [42, 55],
      email: 'claire@petitcafe-du-matin.fr',
    },
  ),
  ...pair(
    ['es', 'tazadecafe-diario.es', 'paginatranquila-uno.es'],
    {
      title: 'Taza de café',
      text: 'La cafetera de mi abuela sigue funcionando.',
      link: 'https://www.awin1.com/cread.php?awinmid=1',
      contact: 'Escríbenos',
      contact_path: '/contacto',
      spelled: 'Escribe a marta{arroba}tazadecafe-diario{punto}es',
    },
    'Cada tarde caminamos junto al río y después escribimos sobre los pájaros que hemos visto por el camino.',
    { evidence: ['affiliate_network Awin', 'keyword cafetera'], score: [30, 42], email: 'marta@tazadecafe-diario.es' },
  ),
  ...pair(
    ['it', 'ilcaffedimarco-blog.it', 'paginatranquilla-uno.it'],
    {
      title: 'Il caffè di Marco',
      text: 'La mia nuova macchina da caffè fa un rumore strano.',
      link: 'https://moka-house.it/blog',
      contact: 'Contatti',
      contact_path: '/contatti',
      spelled: 'marco (chiocciola) ilcaffedimarco-blog.it',
    },
    'Ogni sera camminiamo lungo il fiume e poi scriviamo degli uccelli che abbiamo visto durante la passeggiata.',
    {
      evidence: ['competitor_link moka-house.it', 'keyword macchina da caffè'],
      score: [42, 55],
      email: 'marco@ilcaffedimarco-blog.it',
    },
  ),
  ...pair(
    ['pt', 'cafezinho-da-ana.com.br', 'paginacalma-um.pt'],
    {
      title: 'Cafezinho da Ana',
      text: 'Testei uma cafeteira italiana por um mês.',
      link: 'https://go.hotmart.com/A1',
      contact: 'Contato',
      contact_path: '/contato',
      spelled: 'ana (arroba) cafezinho-da-ana (ponto) com (ponto) br',
    },
    'Todas as tardes caminhamos ao longo do rio e depois escrevemos sobre os pássaros que vimos no caminho.',
    {
      evidence: ['affiliate_network Hotmart', 'keyword cafeteira'],
      score: [30, 42],
      email: 'ana@cafezinho-da-ana.com.br',
    },
  ),
  ...pair(
    ['nl', 'koffiemoment-blog.nl', 'rustigepagina-een.nl'],
    {
      title: 'Koffiemoment',
      text: 'Dit koffiezetapparaat gaat al tien jaar mee.',
      link: 'https://lt45.net/c/?si=1',
      contact: 'Over mij',
      contact_path: '/over-mij',
      spelled: 'Mail: sanne [apenstaartje] koffiemoment-blog.nl',
    },
    'Elke avond wandelen we langs het kanaal en daarna schrijven we over de vogels die we onderweg hebben gezien.',
    {
      evidence: ['affiliate_network Daisycon', 'keyword koffiezetapparaat'],
      score: [30, 42],
      email: 'sanne@koffiemoment-blog.nl',
    },
  ),
  ...pair(
    ['pl', 'kawaodrana-blog.pl', 'spokojnastrona-raz.pl'],
    {
      title: 'Kawa od rana',
      text: 'Jaki ekspres do kawy kupić do małej kuchni?',
      link: 'https://converti.se/click/1',
      contact: 'Współpraca',
      contact_path: '/wspolpraca',
      spelled: 'ola (małpa) kawaodrana-blog (kropka) pl',
    },
    'Każdego wieczoru spacerujemy wzdłuż rzeki, a potem piszemy o ptakach, które widzieliśmy po drodze.',
    {
      evidence: ['affiliate_network Convertiser', 'keyword ekspres do kawy'],
      score: [30, 42],
      email: 'ola@kawaodrana-blog.pl',
    },
  ),
  ...pair(
    ['sv', 'fikastunden-blogg.se', 'lugnsida-ett.se'],
    {
      title: 'Fikastunden',
      text: 'En ny kaffemaskin står på bänken.',
      link: 'https://track.adtraction.com/t/t?a=1',
      contact: 'Om mig',
      contact_path: '/om-mig',
      spelled: 'elsa (snabel-a) fikastunden-blogg.se',
    },
    'Varje kväll går vi längs kanalen och sedan skriver vi om fåglarna som vi har sett på vägen hem.',
    {
      evidence: ['affiliate_network Adtraction', 'keyword kaffemaskin'],
      score: [30, 42],
      email: 'elsa@fikastunden-blogg.se',
    },
  ),
  ...pair(
    ['ja', 'asano-coffee.jp', 'shizuka-page.jp'],
    {
      title: '朝のコーヒー',
      text: '新しいコーヒーメーカーを一か月使いました。',
      link: 'https://px.a8.net/svt/ejp?a8mat=1',
      contact: 'お問い合わせ',
      contact_path: '/inquiry',
      spelled: 'メール：yuki☆asano-coffee.jp（☆を@に変えてください）',
    },
    '毎晩、川沿いを歩いて、帰ってから見かけた鳥のことを書いています。写真も少しだけあります。',
    {
      evidence: ['affiliate_network A8.net', 'keyword コーヒーメーカー'],
      score: [30, 42],
      email: 'yuki@asano-coffee.jp',
    },
  ),
  {
    host: 'kofe-utrom.ru',
    ...mailed,
    pages: {
      '/': html({
        lang: 'ru',
        title: 'Промокоды на кофе',
        body: `<p>Лучшие эспрессо-машины.</p>${a('https://ad.admitad.com/g/1/', 'Купить')}${a('/contacts', 'Контакты')}`,
      }),
      '/contacts': html({ lang: 'ru', title: 'Контакты', body: 'Почта: ivan (собака) kofe-utrom.ru' }),
    },
    golden: {
      language: 'ru',
      evidence: ['coupon_page /', 'affiliate_network Admitad'],
      score: [8, 16],
      addresses: ['ivan@kofe-utrom.ru'],
    },
  },
  {
    host: 'kahve-sabahi.com.tr',
    ...mailed,
    pages: {
      '/': html({
        lang: 'tr',
        title: 'İndirim kodları',
        body: `<p>Her hafta yeni kahve makineleri.</p>${a('/iletisim', 'İletişim')}`,
      }),
      '/iletisim': html({ lang: 'tr', title: 'İletişim', body: 'bilgi@kahve-sabahi.com.tr' }),
    },
    golden: { language: 'tr', evidence: ['coupon_page /'], score: [1, 6], addresses: ['bilgi@kahve-sabahi.com.tr'] },
  },
];
