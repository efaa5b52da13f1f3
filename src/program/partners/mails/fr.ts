import type { MailTexts } from './texts.ts';

export const fr: MailTexts = {
  greeting: 'Bonjour,',
  settings: (url) => `Choisissez les e-mails que vous recevez\u00a0: ${url}`,
  terms: ({ url, version }) => `Les conditions du programme, version ${version}\u00a0: ${url}`,
  applied: ({ program, portal_url }) => ({
    subject: `Votre candidature auprès de ${program}`,
    paragraphs: [
      `Nous avons bien reçu votre candidature au programme partenaire de ${program}. Vous recevrez un e-mail dès qu’une décision sera prise.`,
      `Pour suivre son état\u00a0: ${portal_url}`,
    ],
  }),
  approved: ({ program, portal_url }) => ({
    subject: `Votre candidature auprès de ${program} a été acceptée`,
    paragraphs: [
      `Votre candidature a été acceptée : vous êtes maintenant partenaire de ${program}.`,
      `Connectez-vous pour obtenir vos liens et indiquer comment vous souhaitez être payé\u00a0: ${portal_url}`,
    ],
  }),
  rejected: ({ program, reason }) => ({
    subject: `Votre candidature auprès de ${program} a été refusée`,
    paragraphs: [`Votre candidature au programme partenaire de ${program} a été refusée. Le motif\u00a0:`, reason],
  }),
  welcome: ({ program, portal_url }) => ({
    subject: `Bienvenue dans le programme partenaire de ${program}`,
    paragraphs: [
      `Vous êtes maintenant partenaire de ${program}.`,
      `Connectez-vous pour obtenir vos liens et indiquer comment vous souhaitez être payé\u00a0: ${portal_url}`,
    ],
  }),
  first_referral: ({ program, portal_url }) => ({
    subject: `Votre première recommandation pour ${program}`,
    paragraphs: [`${program} a son premier client grâce à vous.`, `Vos recommandations\u00a0: ${portal_url}`],
  }),
  new_referrals: ({ program, count, portal_url }) => ({
    subject:
      count === 1
        ? `Une nouvelle recommandation pour ${program}`
        : `${count} nouvelles recommandations pour ${program}`,
    paragraphs: [
      count === 1
        ? `${program} a un nouveau client grâce à vous.`
        : `${program} a ${count} nouveaux clients grâce à vous.`,
      `Vos recommandations\u00a0: ${portal_url}`,
    ],
  }),
  more_referrals: ({ program, count, day, portal_url }) => ({
    subject: `${count} recommandations de plus pour ${program} le ${day}`,
    paragraphs: [
      `En plus de ceux que nous vous avons annoncés, ${program} a eu ${count} nouveaux clients grâce à vous le ${day} (UTC).`,
      `Vos recommandations\u00a0: ${portal_url}`,
    ],
  }),
  rate_changed: ({ program, rates, portal_url }) => ({
    subject: `Votre taux de commission chez ${program} a changé`,
    paragraphs: [
      `Le taux de vos commissions chez ${program} a changé. Il s’applique aux paiements à partir de maintenant ; ce que vous avez déjà gagné ne change pas.`,
      rates.join('\n'),
      `Vos commissions\u00a0: ${portal_url}`,
    ],
  }),
  rates: {
    all: 'Tous les paiements',
    first: 'Premiers paiements des clients',
    renewal: 'Paiements suivants',
    none: 'aucune commission',
  },
  payout_method_changed: ({ program, method, hint, held_until, portal_url }) => ({
    subject: `Votre mode de paiement chez ${program} a été modifié`,
    paragraphs: [
      `${program} vous paie désormais par ${method}, sur le compte qui se termine par ${hint}.`,
      ...(held_until === null ? [] : [`Rien n’y est versé avant le ${held_until} (UTC).`]),
      `Si vous n’êtes pas à l’origine de ce changement, connectez-vous, corrigez-le tout de suite et prévenez l’entreprise qui gère le programme\u00a0: ${portal_url}`,
    ],
  }),
  sign_in: ({ program, url, minutes }) => ({
    subject: `Se connecter à ${program}`,
    paragraphs: [
      `Ouvrez cette page pour vous connecter au portail partenaire de ${program}\u00a0:`,
      url,
      `Le lien ne fonctionne qu’une fois, pendant ${minutes} minutes. Si vous ne l’avez pas demandé, ignorez cet e-mail : personne ne peut se connecter sans lui.`,
    ],
  }),
  payout_paid: ({ program, amount, method, account, period, statement, is_attached, payout_id }) => ({
    subject: `Votre versement de ${amount} par ${program}`,
    paragraphs: [
      `${program} vous a versé ${amount}.`,
      [
        `Mode de paiement\u00a0: ${method}${account && `, compte se terminant par ${account}`}`,
        `Période\u00a0: ${period} (UTC)`,
        `Relevé\u00a0: ${statement}${is_attached ? ', ci-joint' : ''}`,
        `Versement\u00a0: ${payout_id}`,
      ].join('\n'),
    ],
  }),
  to: 'au',
  methods: {
    bank_transfer: 'virement bancaire',
    wire: 'virement international',
    crypto: 'cryptomonnaie',
    paypal: 'PayPal',
    wise: 'Wise',
    stripe: 'Stripe',
  },
};
