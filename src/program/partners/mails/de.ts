import type { MailTexts } from './texts.ts';

export const de: MailTexts = {
  greeting: 'Guten Tag,',
  settings: (url) => `Wählen Sie, welche E-Mails Sie erhalten: ${url}`,
  terms: ({ url, version }) => `Die Bedingungen des Programms, Version ${version}: ${url}`,
  applied: ({ program, portal_url }) => ({
    subject: `Ihre Bewerbung bei ${program}`,
    paragraphs: [
      `Wir haben Ihre Bewerbung für das Partnerprogramm von ${program} erhalten. Sobald darüber entschieden ist, bekommen Sie eine E-Mail.`,
      `Stand der Bewerbung: ${portal_url}`,
    ],
  }),
  approved: ({ program, portal_url }) => ({
    subject: `Ihre Bewerbung bei ${program} wurde angenommen`,
    paragraphs: [
      `Ihre Bewerbung wurde angenommen: Sie sind jetzt Partner von ${program}.`,
      `Melden Sie sich an, um Ihre Links zu erhalten und anzugeben, wie Sie bezahlt werden möchten: ${portal_url}`,
    ],
  }),
  rejected: ({ program, reason }) => ({
    subject: `Ihre Bewerbung bei ${program} wurde abgelehnt`,
    paragraphs: [`Ihre Bewerbung für das Partnerprogramm von ${program} wurde abgelehnt. Die Begründung:`, reason],
  }),
  welcome: ({ program, portal_url }) => ({
    subject: `Willkommen im Partnerprogramm von ${program}`,
    paragraphs: [
      `Sie sind jetzt Partner von ${program}.`,
      `Melden Sie sich an, um Ihre Links zu erhalten und anzugeben, wie Sie bezahlt werden möchten: ${portal_url}`,
    ],
  }),
  first_referral: ({ program, portal_url }) => ({
    subject: `Ihre erste Empfehlung für ${program}`,
    paragraphs: [`${program} hat durch Sie den ersten Kunden gewonnen.`, `Ihre Empfehlungen: ${portal_url}`],
  }),
  new_referrals: ({ program, count, portal_url }) => ({
    subject: count === 1 ? `Eine neue Empfehlung für ${program}` : `${count} neue Empfehlungen für ${program}`,
    paragraphs: [
      count === 1
        ? `${program} hat durch Sie einen neuen Kunden gewonnen.`
        : `${program} hat durch Sie ${count} neue Kunden gewonnen.`,
      `Ihre Empfehlungen: ${portal_url}`,
    ],
  }),
  more_referrals: ({ program, count, day, portal_url }) => ({
    subject: `${count} weitere Empfehlungen für ${program} am ${day}`,
    paragraphs: [
      `Am ${day} (UTC) hat ${program} durch Sie ${count} weitere neue Kunden gewonnen, über die wir Ihnen nicht einzeln geschrieben haben.`,
      `Ihre Empfehlungen: ${portal_url}`,
    ],
  }),
  rate_changed: ({ program, rates, portal_url }) => ({
    subject: `Ihr Provisionssatz bei ${program} hat sich geändert`,
    paragraphs: [
      `Der Satz, zu dem Sie bei ${program} Provisionen verdienen, hat sich geändert. Er gilt für Zahlungen ab jetzt; bereits verdiente Provisionen bleiben unverändert.`,
      rates.join('\n'),
      `Ihre Provisionen: ${portal_url}`,
    ],
  }),
  rates: {
    all: 'Alle Zahlungen',
    first: 'Erste Zahlungen von Kunden',
    renewal: 'Spätere Zahlungen',
    none: 'keine Provision',
  },
  payout_method_changed: ({ program, method, hint, held_until, portal_url }) => ({
    subject: `Ihr Auszahlungsweg bei ${program} wurde geändert`,
    paragraphs: [
      `${program} bezahlt Sie jetzt per ${method} auf das Konto, das auf ${hint} endet.`,
      ...(held_until === null ? [] : [`Vor dem ${held_until} (UTC) wird nichts dorthin ausgezahlt.`]),
      `Wenn Sie das nicht selbst geändert haben, melden Sie sich an, berichtigen Sie es sofort, und informieren Sie das Unternehmen, das das Programm betreibt: ${portal_url}`,
    ],
  }),
  sign_in: ({ program, url, minutes }) => ({
    subject: `Anmelden bei ${program}`,
    paragraphs: [
      `Öffnen Sie diese Seite, um sich im Partnerportal von ${program} anzumelden:`,
      url,
      `Der Link funktioniert einmal, innerhalb von ${minutes} Minuten. Wenn Sie ihn nicht angefordert haben, ignorieren Sie diese E-Mail: Ohne sie kann sich niemand anmelden.`,
    ],
  }),
  payout_paid: ({ program, amount, method, account, period, statement, is_attached, payout_id }) => ({
    subject: `Ihre Auszahlung über ${amount} von ${program}`,
    paragraphs: [
      `${program} hat Ihnen ${amount} ausgezahlt.`,
      [
        `Auszahlungsweg: ${method}${account && `, Konto endet auf ${account}`}`,
        `Zeitraum: ${period} (UTC)`,
        `Abrechnung: ${statement}${is_attached ? ', im Anhang' : ''}`,
        `Auszahlung: ${payout_id}`,
      ].join('\n'),
    ],
  }),
  to: 'bis',
  methods: {
    bank_transfer: 'Überweisung',
    wire: 'Auslandsüberweisung',
    crypto: 'Kryptowährung',
    paypal: 'PayPal',
    wise: 'Wise',
    stripe: 'Stripe',
  },
};
