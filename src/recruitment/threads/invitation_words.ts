/** What an invitation says in the languages of outreach, where the request does not say it. */
interface Words {
  subject: string;
  greeting: string;
  text: string;
}

const words: Readonly<Record<string, Words>> = {
  en: {
    subject: 'Invitation to the affiliate program of {brand}',
    greeting: 'Hello',
    text: 'We would like to invite you to the affiliate program of {brand}.\n\nJoin here: {join_url}',
  },
  de: {
    subject: 'Einladung zum Partnerprogramm von {brand}',
    greeting: 'Guten Tag',
    text: 'Wir möchten Sie zum Partnerprogramm von {brand} einladen.\n\nHier können Sie sich anmelden: {join_url}',
  },
  fr: {
    subject: 'Invitation au programme d’affiliation de {brand}',
    greeting: 'Bonjour',
    text: 'Nous souhaitons vous inviter à rejoindre le programme d’affiliation de {brand}.\n\nPour vous inscrire : {join_url}',
  },
  es: {
    subject: 'Invitación al programa de afiliados de {brand}',
    greeting: 'Hola',
    text: 'Nos gustaría invitarle a unirse al programa de afiliados de {brand}.\n\nPuede inscribirse aquí: {join_url}',
  },
  it: {
    subject: 'Invito al programma di affiliazione di {brand}',
    greeting: 'Buongiorno',
    text: 'Desideriamo invitarLa al programma di affiliazione di {brand}.\n\nPuò iscriversi qui: {join_url}',
  },
  pt: {
    subject: 'Convite para o programa de afiliados de {brand}',
    greeting: 'Olá',
    text: 'Gostaríamos de lhe propor a participação no programa de afiliados de {brand}.\n\nInscreva-se aqui: {join_url}',
  },
};

interface Invited {
  language_code: string | null;
  /** Of the prospect. */
  name: string | null;
  brand: string;
  join_url: string;
}

/** In the prospect's language if it is one of the six, else in English. */
export function invitationText({ language_code, name, brand, join_url }: Invited): { subject: string; text: string } {
  const { subject, greeting, text } = words[language_code?.slice(0, 2).toLowerCase() ?? ''] ?? (words.en as Words);
  const filled = (template: string) =>
    template.replace(/\{(brand|join_url)\}/g, (_, field) => (field === 'brand' ? brand : join_url));
  return { subject: filled(subject), text: `${greeting}${name ? ` ${name}` : ''},\n\n${filled(text)}` };
}
