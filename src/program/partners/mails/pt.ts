import type { MailTexts } from './texts.ts';

export const pt: MailTexts = {
  greeting: 'Olá,',
  settings: (url) => `Escolha os e-mails que recebe: ${url}`,
  terms: ({ url, version }) => `Os termos do programa, versão ${version}: ${url}`,
  applied: ({ program, portal_url }) => ({
    subject: `A sua candidatura a ${program}`,
    paragraphs: [
      `Recebemos a sua candidatura ao programa de parceiros de ${program}. Receberá um e-mail quando houver uma decisão.`,
      `Para acompanhar o estado: ${portal_url}`,
    ],
  }),
  approved: ({ program, portal_url }) => ({
    subject: `A sua candidatura a ${program} foi aceite`,
    paragraphs: [
      `A sua candidatura foi aceite: é agora parceiro de ${program}.`,
      `Inicie sessão para obter os seus links e indicar como quer ser pago: ${portal_url}`,
    ],
  }),
  rejected: ({ program, reason }) => ({
    subject: `A sua candidatura a ${program} foi recusada`,
    paragraphs: [`A sua candidatura ao programa de parceiros de ${program} foi recusada. O motivo:`, reason],
  }),
  welcome: ({ program, portal_url }) => ({
    subject: `Boas-vindas ao programa de parceiros de ${program}`,
    paragraphs: [
      `É agora parceiro de ${program}.`,
      `Inicie sessão para obter os seus links e indicar como quer ser pago: ${portal_url}`,
    ],
  }),
  first_referral: ({ program, portal_url }) => ({
    subject: `A sua primeira recomendação para ${program}`,
    paragraphs: [`${program} tem o primeiro cliente graças a si.`, `As suas recomendações: ${portal_url}`],
  }),
  new_referrals: ({ program, count, portal_url }) => ({
    subject: count === 1 ? `Uma nova recomendação para ${program}` : `${count} novas recomendações para ${program}`,
    paragraphs: [
      count === 1
        ? `${program} tem um novo cliente graças a si.`
        : `${program} tem ${count} novos clientes graças a si.`,
      `As suas recomendações: ${portal_url}`,
    ],
  }),
  more_referrals: ({ program, count, day, portal_url }) => ({
    subject: `Mais ${count} recomendações para ${program} em ${day}`,
    paragraphs: [
      `Além dos que já lhe comunicámos, ${program} teve ${count} novos clientes graças a si em ${day} (UTC).`,
      `As suas recomendações: ${portal_url}`,
    ],
  }),
  rate_changed: ({ program, rates, portal_url }) => ({
    subject: `A sua taxa de comissão em ${program} mudou`,
    paragraphs: [
      `A taxa das suas comissões em ${program} mudou. Aplica-se aos pagamentos a partir de agora; o que já ganhou não muda.`,
      rates.join('\n'),
      `As suas comissões: ${portal_url}`,
    ],
  }),
  rates: {
    all: 'Todos os pagamentos',
    first: 'Primeiros pagamentos dos clientes',
    renewal: 'Pagamentos seguintes',
    none: 'sem comissão',
  },
  payout_method_changed: ({ program, method, hint, held_until, portal_url }) => ({
    subject: `O seu método de pagamento em ${program} foi alterado`,
    paragraphs: [
      `${program} paga-lhe agora por ${method}, para a conta que termina em ${hint}.`,
      ...(held_until === null ? [] : [`Nada é pago para essa conta antes de ${held_until} (UTC).`]),
      `Se não foi você que o alterou, inicie sessão, corrija-o já e avise a empresa que gere o programa: ${portal_url}`,
    ],
  }),
  sign_in: ({ program, url, minutes }) => ({
    subject: `Iniciar sessão em ${program}`,
    paragraphs: [
      `Abra esta página para iniciar sessão no portal de parceiros de ${program}:`,
      url,
      `O link só funciona uma vez, durante ${minutes} minutos. Se não o pediu, ignore este e-mail: ninguém pode iniciar sessão sem ele.`,
    ],
  }),
  payout_paid: ({ program, amount, method, account, period, statement, is_attached, payout_id }) => ({
    subject: `O seu pagamento de ${amount} de ${program}`,
    paragraphs: [
      `${program} pagou-lhe ${amount}.`,
      [
        `Método: ${method}${account && `, conta terminada em ${account}`}`,
        `Período: ${period} (UTC)`,
        `Extrato: ${statement}${is_attached ? ', em anexo' : ''}`,
        `Pagamento: ${payout_id}`,
      ].join('\n'),
    ],
  }),
  to: 'a',
  methods: {
    bank_transfer: 'transferência bancária',
    wire: 'transferência internacional',
    crypto: 'criptomoeda',
    paypal: 'PayPal',
    wise: 'Wise',
    stripe: 'Stripe',
  },
};
