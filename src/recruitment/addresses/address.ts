/** An email address: whether a text is one, and what kind of mailbox it leads to. */

import { domainToASCII } from 'node:url';
import { parse } from 'tldts';
import { registrableDomain } from '../pages/key.ts';

const most_characters = 254;
const most_local_characters = 64;
const local_form = /^[a-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[a-z0-9!#$%&'*+/=?^_`{|}~-]+)*$/;

/** In lower case, its domain in ASCII. Undefined for what is no address at a domain of the public DNS. */
export function parseAddress(text: string): string | undefined {
  const at = text.lastIndexOf('@');
  if (at <= 0) return undefined;
  const local = text.slice(0, at).toLowerCase();
  const domain = domainToASCII(text.slice(at + 1).replace(/\.$/, ''));
  const { isIcann, domain: registrable } = parse(domain);
  if (!isIcann || registrable === null || !/^[a-z0-9.-]+$/.test(domain)) return undefined;
  const is_short = local.length <= most_local_characters && local.length + 1 + domain.length <= most_characters;
  return is_short && local_form.test(local) ? `${local}@${domain}` : undefined;
}

export function domainOf(email: string): string {
  return email.slice(email.lastIndexOf('@') + 1);
}

/** Mailboxes for partners and advertising; those for everybody; those for something else. */
const roles: Record<'business' | 'general' | 'other', string> = {
  business:
    'affiliate affiliates affiliation partner partners partnership partnerships partnerprogramm sponsor sponsors sponsoring sponsorship advertise advertising ads adv ad werbung anzeigen publicite pub publicidad pubblicita publicidade marketing business biz collab collabs collaboration collaborations kooperation kooperationen colaboraciones collaborazioni parcerias media mediakit mediadaten press presse prensa stampa imprensa pr reklama reklame annonce ilan brands brand commercial booking bookings sales vertrieb ventas vendite vendas commerciale',
  general:
    'info infos hello hallo hi hey hola bonjour ciao ola hej contact contacts kontakt contacto contatti contatto contato contacte mail email post mailbox office buero team redaktion redaction redaccion redazione redacao redakcja redactie editor editors editorial admin administrator webmaster secretary sekretariat general inquiries inquiry enquiries enquiry ask welcome kontor iletisim bilgi biuro poczta studio shop store blog podcast show news newsletter me mich us',
  other:
    'support help helpdesk service kundenservice customerservice customercare care soporte assistenza suporte billing invoice invoices rechnung buchhaltung accounting finance payments orders order bestellung returns jobs job career careers karriere bewerbung hr recruiting recruitment legal privacy datenschutz gdpr dsgvo rgpd dpo dmca copyright abuse security postmaster hostmaster root sysadmin it tech technical unsubscribe feedback complaints reklamation bounce bounces dmarc spam',
};
const role_of_name = new Map(
  Object.entries(roles).flatMap(([role, names]) => names.split(' ').map((name) => [name, role as keyof typeof roles])),
);

/** `person`, or whom a mailbox of many serves. A name like its own domain's is one for everybody. */
export function mailboxOf(email: string): 'person' | keyof typeof roles {
  const local = email.slice(0, email.lastIndexOf('@')).replace(/\+.*/s, '');
  const plain = local.replace(/(?<!\d)\d+$/, '');
  const parts = plain.split(/[._-]/);
  const role =
    role_of_name.get(plain) ??
    role_of_name.get(parts.join('')) ??
    parts.map((part) => role_of_name.get(part)).find((each) => each);
  if (role) return role;
  const site = registrableDomain(domainOf(email))?.split('.')[0] ?? '';
  return parts.join('') === site.replaceAll('-', '') ? 'general' : 'person';
}

const no_reply =
  /^(?:no|do-?not|dont)[._-]?(?:reply|respond|answer)|^(?:nicht|nao|ne)[._-]?(?:antworten|responda|pas[._-]?repondre)|^mailer-daemon$/;
const decoy_domains =
  /^(?:example|exemple|ejemplo|esempio|beispiel|test|domain|domaine|dominio|domena|your-?domain|my-?domain|your-?site|my-?site|your-?website|website|your-?company|company|site|mail-?server|server|host|localhost|mustermann|musterfirma)\.[a-z.]+$/;
/** The domains of makers of websites, trackers, fonts and formats: their addresses are on everybody's pages. */
const foreign_domains = new Set(
  'sentry.io wixpress.com wix.com schema.org w3.org googleapis.com gstatic.com cloudflare.com wordpress.org wordpress.com squarespace.com godaddy.com shopify.com automattic.com jimdo.com latofonts.com typekit.com adobe.com fontawesome.com jquery.com github.com ghost.org webflow.com elementor.com mailchimp.com ingest.sentry.io'.split(
    ' ',
  ),
);
/** The networks whose handles look like addresses. */
const handle_domains = /^(?:mastodon|mstdn|pixelfed|lemmy|pleroma|misskey|peertube)\.[a-z.]+$/;
const placeholder_locals =
  /^(?:you|your|yours|your[._-]?(?:name|email|mail|address)|name|my[._-]?name|user|user[._-]?name|email|mail|e-mail|someone|somebody|somename|first[._-]?name|last[._-]?name|first[._-]?name[._-]?last[._-]?name|john[._-]?doe|jane[._-]?doe|vorname|nachname|vorname[._-]?nachname|max[._-]?mustermann|erika[._-]?mustermann|nom|prenom|prenom[._-]?nom|nombre|tu[._-]?(?:nombre|email|correo)|nome|nome[._-]?cognome|seu[._-]?(?:nome|email)|ihre?[._-]?(?:name|email)|deine?[._-]?(?:name|email)|votre[._-]?(?:nom|email)|example|exemple|ejemplo|test|xxx+|abc|foo|bar)$/;
const placeholder_domains = new Set(
  'email.com mail.com gmail.com yahoo.com hotmail.com outlook.com web.de gmx.de provider.com provider.de isp.com address.com abc.com xyz.com'.split(
    ' ',
  ),
);

/** Addresses that lead to nobody whom the page is of: samples, file names, keys of trackers, senders that read nothing. */
export function isDecoy(email: string): boolean {
  const at = email.lastIndexOf('@');
  const local = email.slice(0, at);
  const domain = email.slice(at + 1);
  const registrable = registrableDomain(domain) ?? domain;
  return (
    no_reply.test(local) ||
    decoy_domains.test(registrable) ||
    handle_domains.test(registrable) ||
    foreign_domains.has(registrable) ||
    /^(?:[0-9a-f]{16,}|[0-9a-f]{8}-[0-9a-f-]{27})$/.test(local) ||
    // photo@2x.zip: the names of some files end as domains do.
    /^\d+(?:\.\d+)?x(?:\.|$)/.test(domain) ||
    (placeholder_locals.test(local) && placeholder_domains.has(registrable))
  );
}
