import type { MailTexts } from './texts.ts';

export const it: MailTexts = {
  greeting: 'Buongiorno,',
  settings: (url) => `Scelga quali e-mail ricevere: ${url}`,
  terms: ({ url, version }) => `Le condizioni del programma, versione ${version}: ${url}`,
  applied: ({ program, portal_url }) => ({
    subject: `La Sua candidatura a ${program}`,
    paragraphs: [
      `Abbiamo ricevuto la Sua candidatura al programma partner di ${program}. Riceverà un’e-mail quando sarà presa una decisione.`,
      `Per seguirne lo stato: ${portal_url}`,
    ],
  }),
  approved: ({ program, portal_url }) => ({
    subject: `La Sua candidatura a ${program} è stata accettata`,
    paragraphs: [
      `La Sua candidatura è stata accettata: ora è partner di ${program}.`,
      `Acceda per ottenere i Suoi link e indicare come desidera essere pagato: ${portal_url}`,
    ],
  }),
  rejected: ({ program, reason }) => ({
    subject: `La Sua candidatura a ${program} è stata respinta`,
    paragraphs: [`La Sua candidatura al programma partner di ${program} è stata respinta. Il motivo:`, reason],
  }),
  welcome: ({ program, portal_url }) => ({
    subject: `Le diamo il benvenuto nel programma partner di ${program}`,
    paragraphs: [
      `Ora è partner di ${program}.`,
      `Acceda per ottenere i Suoi link e indicare come desidera essere pagato: ${portal_url}`,
    ],
  }),
  first_referral: ({ program, portal_url }) => ({
    subject: `La Sua prima segnalazione per ${program}`,
    paragraphs: [`${program} ha il suo primo cliente grazie a Lei.`, `Le Sue segnalazioni: ${portal_url}`],
  }),
  new_referrals: ({ program, count, portal_url }) => ({
    subject: count === 1 ? `Una nuova segnalazione per ${program}` : `${count} nuove segnalazioni per ${program}`,
    paragraphs: [
      count === 1
        ? `${program} ha un nuovo cliente grazie a Lei.`
        : `${program} ha ${count} nuovi clienti grazie a Lei.`,
      `Le Sue segnalazioni: ${portal_url}`,
    ],
  }),
  more_referrals: ({ program, count, day, portal_url }) => ({
    subject: `Altre ${count} segnalazioni per ${program} il ${day}`,
    paragraphs: [
      `Oltre a quelli già comunicati, il ${day} (UTC) ${program} ha avuto ${count} nuovi clienti grazie a Lei.`,
      `Le Sue segnalazioni: ${portal_url}`,
    ],
  }),
  rate_changed: ({ program, rates, portal_url }) => ({
    subject: `Le Sue commissioni presso ${program} sono cambiate`,
    paragraphs: [
      `Sono cambiate le condizioni delle Sue commissioni presso ${program}. Valgono per i pagamenti da ora in poi; quanto ha già guadagnato non cambia.`,
      rates.join('\n'),
      `Le Sue commissioni: ${portal_url}`,
    ],
  }),
  rates: {
    all: 'Tutti i pagamenti',
    first: 'Primi pagamenti dei clienti',
    renewal: 'Pagamenti successivi',
    none: 'nessuna commissione',
  },
  payout_method_changed: ({ program, method, hint, held_until, portal_url }) => ({
    subject: `Il Suo metodo di pagamento presso ${program} è stato modificato`,
    paragraphs: [
      `${program} ora La paga tramite ${method}, sul conto che termina con ${hint}.`,
      ...(held_until === null ? [] : [`Nulla vi viene versato prima del ${held_until} (UTC).`]),
      `Se la modifica non è Sua, acceda, la corregga subito e avvisi l’azienda che gestisce il programma: ${portal_url}`,
    ],
  }),
  sign_in: ({ program, url, minutes }) => ({
    subject: `Accesso a ${program}`,
    paragraphs: [
      `Apra questa pagina per accedere al portale partner di ${program}:`,
      url,
      `Il link funziona una sola volta, entro ${minutes} minuti. Se non l’ha chiesto, ignori questa e-mail: senza di essa nessuno può accedere.`,
    ],
  }),
  payout_paid: ({ program, amount, method, account, period, statement, is_attached, payout_id }) => ({
    subject: `Il Suo pagamento di ${amount} da ${program}`,
    paragraphs: [
      `${program} Le ha pagato ${amount}.`,
      [
        `Metodo: ${method}${account && `, conto che termina con ${account}`}`,
        `Periodo: ${period} (UTC)`,
        `Rendiconto: ${statement}${is_attached ? ', allegato' : ''}`,
        `Pagamento: ${payout_id}`,
      ].join('\n'),
    ],
  }),
  to: 'al',
  methods: {
    bank_transfer: 'bonifico bancario',
    wire: 'bonifico internazionale',
    crypto: 'criptovaluta',
    paypal: 'PayPal',
    wise: 'Wise',
    stripe: 'Stripe',
  },
};
