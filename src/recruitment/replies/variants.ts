const greetings: Record<string, string[]> = {
  en: ['Hi Marta,', 'Hello,', 'Hey Tom', 'Dear Ms Keller,', 'Good morning,', 'hi there', 'Dear Sir or Madam,'],
  de: ['Hallo Frau Keller,', 'Hallo,', 'Guten Tag,', 'Sehr geehrter Herr Brandt,', 'Moin Jonas,', 'Liebe Marta,'],
  fr: ['Bonjour,', 'Bonjour Marta,', 'Salut', 'Madame, Monsieur,', 'Bonsoir,', 'Coucou Léa'],
  es: ['Hola Marta,', 'Hola', 'Buenos días:', 'Estimado señor Brandt:', 'Buenas tardes,', 'Hola, ¿qué tal?'],
  it: ['Ciao Marta,', 'Buongiorno,', 'Salve', 'Gentile dottor Brandt,', 'Buonasera,'],
  pt: ['Olá Marta,', 'Oi', 'Bom dia,', 'Boa tarde, tudo bem?', 'Prezado Sr. Brandt,', 'Oi, Marta, tudo bem?'],
};
const closings: Record<string, string[]> = {
  en: [
    'Best,\nTom',
    'Thanks\nRuth',
    'Kind regards,\nJ. Brandt\nEditor',
    'Cheers',
    'xx Ana',
    'Sent from my phone',
    'Regards',
  ],
  de: [
    'Viele Grüße\nTom',
    'LG',
    'Mit freundlichen Grüßen\nJ. Brandt\nRedaktion',
    'Danke und Gruß',
    'Gesendet von meinem Handy',
  ],
  fr: ['Cordialement,\nJeanne', 'Bien à vous', 'Merci,\nPaul', 'Bonne journée', 'Envoyé de mon téléphone'],
  es: ['Saludos,\nAna', 'Un saludo', 'Gracias\nPablo', 'Atentamente,\nJ. Ruiz', 'Enviado desde mi móvil'],
  it: ['Saluti,\nAnna', 'Cordiali saluti', 'Grazie\nPaolo', 'A presto', 'Inviato dal mio telefono'],
  pt: ['Abraços,\nAna', 'Atenciosamente,\nJ. Silva', 'Obrigado', 'Cumprimentos', 'Enviado do meu celular'],
};

/** The same text as others would type it: slips, no capitals, no punctuation, another greeting and closing. */
export function variantsOf(text: string, language: string, count: number, next: () => number): string[] {
  return Array.from({ length: count }, () => variantOf(text, language, next));
}

function variantOf(text: string, language: string, next: () => number): string {
  let changed = text;
  if (next() < 0.25) changed = changed.toLowerCase();
  if (next() < 0.2) changed = changed.replace(/[.,;:!]/g, '');
  if (next() < 0.15) changed = changed.replace(/[?¿¡]/g, '');
  if (next() < 0.06) changed = changed.toUpperCase();
  if (next() < 0.5) changed = mistyped(changed, next);
  if (next() < 0.35) changed = `${pick(greetings[language], next)}\n\n${changed}`;
  if (next() < 0.35) changed = `${changed}\n\n${pick(closings[language], next)}`;
  return changed;
}

const pick = (choices: string[] = [''], next: () => number): string =>
  choices[Math.floor(next() * choices.length)] ?? '';

/** About one slip in twelve words: a letter left out, doubled, or changed with its neighbour. */
function mistyped(text: string, next: () => number): string {
  return text.replace(/\p{L}{4,}/gu, (word) => {
    if (next() > 0.08) return word;
    const at = 1 + Math.floor(next() * (word.length - 2));
    const kind = next();
    if (kind < 0.4) return word.slice(0, at) + word.slice(at + 1);
    if (kind < 0.6) return word.slice(0, at) + word[at] + word.slice(at);
    return word.slice(0, at) + word[at + 1] + word[at] + word.slice(at + 2);
  });
}
