/** Providers of mailboxes: what their customers add to their SPF records, and the DKIM selectors that they sign with. */

export interface MailProvider {
  /** The hosts of its SMTP servers. */
  hosts: RegExp;
  /** The domains whose SPF records list the servers that it sends from, either of which its customers include: first the one it documents. */
  spf: [string, ...string[]];
  selectors: string[];
}

const zoho_selectors = ['zmail', 'zoho'];
const providers: MailProvider[] = [
  {
    hosts: /(^|\.)(gmail|google|googlemail)\.com$/,
    spf: ['_spf.google.com'],
    selectors: ['google', '20230601', '20210112'],
  },
  {
    hosts: /(^|\.)(office365|outlook|hotmail|live)\.com$/,
    spf: ['spf.protection.outlook.com'],
    selectors: ['selector1', 'selector2'],
  },
  { hosts: /(^|\.)zoho\.com$/, spf: ['zohomail.com', 'zoho.com'], selectors: zoho_selectors },
  { hosts: /(^|\.)zoho\.eu$/, spf: ['zohomail.eu', 'zoho.eu'], selectors: zoho_selectors },
  { hosts: /(^|\.)zoho\.in$/, spf: ['zohomail.in', 'zoho.in'], selectors: zoho_selectors },
  {
    hosts: /(^|\.)(fastmail\.com|messagingengine\.com)$/,
    spf: ['spf.messagingengine.com'],
    selectors: ['fm1', 'fm2', 'fm3', 'mesmtp'],
  },
  {
    hosts: /(^|\.)(protonmail\.ch|proton\.me)$/,
    spf: ['_spf.protonmail.ch'],
    selectors: ['protonmail', 'protonmail2', 'protonmail3'],
  },
  { hosts: /(^|\.)(mail\.me|icloud)\.com$/, spf: ['icloud.com'], selectors: ['sig1'] },
  { hosts: /(^|\.)migadu\.com$/, spf: ['spf.migadu.com'], selectors: ['key1', 'key2', 'key3'] },
  { hosts: /(^|\.)gandi\.net$/, spf: ['_mailcust.gandi.net'], selectors: ['gm1', 'gm2', 'gm3'] },
  { hosts: /(^|\.)ovh\.(net|com)$/, spf: ['mx.ovh.com'], selectors: [] },
  { hosts: /(^|\.)yandex\.(com|ru)$/, spf: ['_spf.yandex.net'], selectors: ['mail'] },
  { hosts: /(^|\.)titan\.email$/, spf: ['spf.titan.email'], selectors: ['titan1', 'titan2'] },
  { hosts: /(^|\.)privateemail\.com$/, spf: ['spf.privateemail.com'], selectors: ['default', 'privateemail'] },
  { hosts: /(^|\.)emailsrvr\.com$/, spf: ['emailsrvr.com'], selectors: [] },
];

/** Selectors of services and servers that anybody runs. */
const common_selectors = (
  'default mail email dkim dkim1 dkim2 s1 s2 s1024 s2048 k1 k2 k3 key1 key2 mx smtp x a ' +
  'selector1 selector2 google zoho fm1 protonmail mailjet brevo1 brevo2 sib pm mandrill mta pic krs everlytickey1 hs1 hs2 ' +
  's1-ionos s2-ionos hostingermail1 hostingermail-a hostingermail-b MBO0001 MBO0002'
).split(' ');

export const providerOf = (host: string): MailProvider | undefined => providers.find(({ hosts }) => hosts.test(host));

/** The selectors to look for: those of the provider first. */
export const selectorsOf = (host: string): string[] => [
  ...new Set([...(providerOf(host)?.selectors ?? []), ...common_selectors]),
];
