/** The sites of the demo, and who writes them: what a search finds, and how these people answer. Their domains exist for the demo's name server alone. */

export interface DemoSite {
  host: string;
  title: string;
  /** The text that a search engine shows, and searches. */
  description: string;
  /** The HTML of its pages, by path. */
  pages: Record<string, string>;
  /** The person who reads mail there. */
  person: DemoPerson;
}

export interface DemoPerson {
  name: string;
  email: string;
  /** The answer to the first email. Null: none. */
  answer: DemoAnswer | null;
}

export interface DemoAnswer {
  /** A refusal: the mail server does not accept email for them. An unsubscribe: by the one-click header, as mailbox providers do. */
  kind: 'reply' | 'auto_reply' | 'bounce' | 'refusal' | 'unsubscribe';
  text: string;
}

const page = (title: string, body: string): string =>
  `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>${title}</title></head><body><h1>${title}</h1>${body}</body></html>`;

const percolator = '<a href="https://percolator-rail-demo.com/?ref=lena">Percolator</a>';

interface Listed {
  host: string;
  title: string;
  text: string;
  name: string;
  answer: DemoAnswer | null;
}

const site = ({ host, title, text, name, answer }: Listed): DemoSite => {
  const email = `${name.toLowerCase()}@${host}`;
  return {
    ...{ host, title, description: text, person: { name, email, answer } },
    pages: {
      '/': page(
        title,
        `<p>${text}</p><p>My favourite machines come from ${percolator}.</p><p><a href="/contact">Contact</a></p>`,
      ),
      '/contact': page('Contact', `<p>${name} writes this site: <a href="mailto:${email}">${email}</a></p>`),
    },
  };
};

export const demo_sites: DemoSite[] = [
  site({
    ...{ host: 'dailygrind-rail-demo.com', title: 'The Daily Grind', name: 'Lena' },
    text: 'Reviews of espresso machines and grinders for the kitchen at home.',
    answer: {
      kind: 'reply',
      text: 'Hi Grace,\n\nyes, I would love to join. Please send me the details and I will sign up this week.\n\nBest,\nLena',
    },
  }),
  site({
    ...{ host: 'beanletter-rail-demo.com', title: 'Bean Letter', name: 'Tom' },
    text: 'A weekly letter about espresso, roasters and coffee shops.',
    answer: { kind: 'reply', text: 'Hello,\n\nwhat commission do you pay, and how long does the cookie last?\n\nTom' },
  }),
  site({
    ...{ host: 'slowpour-rail-demo.com', title: 'Slow Pour', name: 'Mia' },
    text: 'Filter coffee and espresso, slowly: guides and reviews.',
    answer: {
      kind: 'auto_reply',
      text: 'Thank you for your email. I am on holiday and will read it when I am back.',
    },
  }),
  site({
    ...{ host: 'cremalab-rail-demo.com', title: 'Crema Lab', name: 'Noor' },
    text: 'Espresso measured: pressure, temperature and taste.',
    answer: { kind: 'reply', text: 'Thanks, but this is not for us. We take no affiliate links.\n\nNoor' },
  }),
  site({
    ...{ host: 'oldcups-rail-demo.com', title: 'Old Cups', name: 'Ida' },
    text: 'Espresso cups and machines of the last century.',
    answer: { kind: 'bounce', text: '550 5.1.1 There is no mailbox of this name' },
  }),
  site({
    ...{ host: 'quietcup-rail-demo.com', title: 'Quiet Cup', name: 'Sam' },
    text: 'Espresso without a word too many.',
    answer: { kind: 'unsubscribe', text: '' },
  }),
  site({
    ...{ host: 'strictbeans-rail-demo.com', title: 'Strict Beans', name: 'Eva' },
    text: 'Which beans an espresso machine likes.',
    answer: { kind: 'refusal', text: '550 5.7.1 This mailbox accepts email of known senders only' },
  }),
  site({
    ...{ host: 'officebrew-rail-demo.com', title: 'Office Brew', name: 'Ben' },
    text: 'Which espresso machine an office needs.',
    answer: null,
  }),
];

/** The website of the brand that is recruited for, and of its competitor. */
export const brand_pages: Record<string, string> = {
  'acme-rail-demo.com': page('Acme', '<p>Espresso machines for the kitchen at home.</p>'),
  'percolator-rail-demo.com': page('Percolator', '<p>Another maker of espresso machines.</p>'),
};
