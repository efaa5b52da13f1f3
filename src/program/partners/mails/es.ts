import type { MailTexts } from './texts.ts';

export const es: MailTexts = {
  greeting: 'Hola:',
  settings: (url) => `Elija qué correos recibe: ${url}`,
  terms: ({ url, version }) => `Las condiciones del programa, versión ${version}: ${url}`,
  applied: ({ program, portal_url }) => ({
    subject: `Su solicitud a ${program}`,
    paragraphs: [
      `Hemos recibido su solicitud para el programa de socios de ${program}. Recibirá un correo cuando haya una decisión.`,
      `Consulte su estado: ${portal_url}`,
    ],
  }),
  approved: ({ program, portal_url }) => ({
    subject: `Su solicitud a ${program} ha sido aceptada`,
    paragraphs: [
      `Su solicitud ha sido aceptada: ya es socio de ${program}.`,
      `Inicie sesión para obtener sus enlaces e indicar cómo quiere cobrar: ${portal_url}`,
    ],
  }),
  rejected: ({ program, reason }) => ({
    subject: `Su solicitud a ${program} ha sido rechazada`,
    paragraphs: [`Su solicitud para el programa de socios de ${program} ha sido rechazada. El motivo:`, reason],
  }),
  welcome: ({ program, portal_url }) => ({
    subject: `Le damos la bienvenida al programa de socios de ${program}`,
    paragraphs: [
      `Ya es socio de ${program}.`,
      `Inicie sesión para obtener sus enlaces e indicar cómo quiere cobrar: ${portal_url}`,
    ],
  }),
  first_referral: ({ program, portal_url }) => ({
    subject: `Su primera recomendación para ${program}`,
    paragraphs: [`${program} tiene su primer cliente gracias a usted.`, `Sus recomendaciones: ${portal_url}`],
  }),
  new_referrals: ({ program, count, portal_url }) => ({
    subject:
      count === 1 ? `Una nueva recomendación para ${program}` : `${count} nuevas recomendaciones para ${program}`,
    paragraphs: [
      count === 1
        ? `${program} tiene un nuevo cliente gracias a usted.`
        : `${program} tiene ${count} nuevos clientes gracias a usted.`,
      `Sus recomendaciones: ${portal_url}`,
    ],
  }),
  more_referrals: ({ program, count, day, portal_url }) => ({
    subject: `${count} recomendaciones más para ${program} el ${day}`,
    paragraphs: [
      `Además de los que ya le comunicamos, ${program} tuvo ${count} nuevos clientes gracias a usted el ${day} (UTC).`,
      `Sus recomendaciones: ${portal_url}`,
    ],
  }),
  rate_changed: ({ program, rates, portal_url }) => ({
    subject: `Su tasa de comisión en ${program} ha cambiado`,
    paragraphs: [
      `Ha cambiado la tasa de sus comisiones en ${program}. Se aplica a los pagos a partir de ahora; lo que ya ha ganado no cambia.`,
      rates.join('\n'),
      `Sus comisiones: ${portal_url}`,
    ],
  }),
  rates: {
    all: 'Todos los pagos',
    first: 'Primeros pagos de los clientes',
    renewal: 'Pagos posteriores',
    none: 'sin comisión',
  },
  payout_method_changed: ({ program, method, hint, held_until, portal_url }) => ({
    subject: `Se ha cambiado su método de cobro en ${program}`,
    paragraphs: [
      `${program} le paga ahora por ${method}, a la cuenta que termina en ${hint}.`,
      ...(held_until === null ? [] : [`No se paga nada a esa cuenta antes del ${held_until} (UTC).`]),
      `Si no lo ha cambiado usted, inicie sesión, corríjalo de inmediato y avise a la empresa que gestiona el programa: ${portal_url}`,
    ],
  }),
  sign_in: ({ program, url, minutes }) => ({
    subject: `Iniciar sesión en ${program}`,
    paragraphs: [
      `Abra esta página para iniciar sesión en el portal de socios de ${program}:`,
      url,
      `El enlace solo funciona una vez, durante ${minutes} minutos. Si no lo ha pedido, ignore este correo: nadie puede iniciar sesión sin él.`,
    ],
  }),
  payout_paid: ({ program, amount, method, account, period, statement, is_attached, payout_id }) => ({
    subject: `Su pago de ${amount} de ${program}`,
    paragraphs: [
      `${program} le ha pagado ${amount}.`,
      [
        `Método: ${method}${account && `, cuenta terminada en ${account}`}`,
        `Periodo: ${period} (UTC)`,
        `Liquidación: ${statement}${is_attached ? ', adjunta' : ''}`,
        `Pago: ${payout_id}`,
      ].join('\n'),
    ],
  }),
  to: 'a',
  methods: {
    bank_transfer: 'transferencia bancaria',
    wire: 'transferencia internacional',
    crypto: 'criptomoneda',
    paypal: 'PayPal',
    wise: 'Wise',
    stripe: 'Stripe',
  },
};
