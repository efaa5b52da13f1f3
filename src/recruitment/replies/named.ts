/** The person whom a writer names instead of himself. It is shown, and never written to. */
export interface Named {
  name?: string;
  email?: string;
}

const most_characters = 4_000;
const title = String.raw`(?:(?:Mr|Mrs|Ms|Miss|Dr|Prof|Herrn?|Frau|M|Mme|Mlle|Monsieur|Madame|Sr|Sra|Srta|Señor|Señora|Sig|Signora?|Dott|Dottor|Dottoressa|Senhora?|Dona)\.?\s+)`;
const word = String.raw`\p{Lu}[\p{L}'’-]{1,30}\.?`;
const full_name = String.raw`${word}(?:\s+(?:(?:de|da|do|dos|di|del|della|van|von|der|den|le|la)\s+){0,2}${word}){0,2}`;
const person = `(${title}{0,2}${full_name})`;

/** Phrases before a person who is referred to, in the six languages. */
const before = [
  'contact(?: my colleague| our)?',
  'write to',
  'talk to',
  'speak (?:to|with)',
  'get in touch with',
  'ask(?: for)?',
  'try',
  'e?-?mail',
  'want',
  'need',
  'introducing you to',
  'connecting you with',
  'handing (?:you )?over to',
  'taken over by',
  'passed (?:it|this|on|along)? ?(?:on )?to',
  'forward(?:ed|ing)?(?: \\w+){0,3} to',
  'addressed? to',
  "cc(?:’d|'d|ing|ed)?:?",
  'copying(?: in)?',
  'looping in',
  'loop in',
  'adding',
  'colleague',
  'manager',
  'boss',
  'successor(?: is)?(?: called)?',
  'replacement(?: is)?',
  'her name is',
  'his name is',
  'called',
  'with',
  '\\+',
  '@',
  'an',
  'Kollegin',
  'Kollegen?',
  'frag(?:en Sie)?(?: lieber| bitte)?',
  'mit',
  'ist(?: jetzt)?',
  'à',
  'avec',
  'collègue',
  'contacter',
  "c’est|c'est",
  'en copie',
  'con',
  'a',
  'compañer[oa]',
  'collega',
  'colega',
  'com',
  'para',
  'contact(?:e|ez|ar|are)',
  'en copia a',
  'in copia',
  'em cópia',
].join('|');
/** Phrases after a person who takes care of it. */
const after = [
  'handles?',
  'deals with',
  'looks after',
  'takes care',
  'manages',
  'runs',
  'decides',
  'owns',
  'is (?:in charge|responsible|the (?:one|person|right))',
  '(?:does|has) (?:that|this|partnerships|taken over)',
  'took over',
  'kümmert sich',
  'ist (?:jetzt |dafür |für \\w+ )?(?:zuständig|verantwortlich)',
  'betreut',
  'macht das',
  "(?:qui )?s[’']occupe",
  'qui gère',
  'gère',
  'se encarga',
  '(?:lo|que) lleva',
  '(?:se ne|si) occupa',
  'che segue',
  'cuida',
  'trata',
  'que trata',
].join('|');
/** Phrases after a person who is no longer there. */
const gone =
  /^[\s,]*(?:\(.{0,40}\)\s*)?(?:has |have |is |ist |hat |a |est |se ha |ha |já |ya |n[’']est |é )?(?:left|retired|died|passed|quit|moved|no longer|verlassen|nicht mehr|im Ruhestand|ausgeschieden|unser \w+ verlassen|parti|quitté|plus|dejó|jubilad|no trabaja|lasciato|andato|non lavora|saiu|reformou|não trabalha|doesn|does not|isn|wasn)/iu;

const article = String.raw`(?:(?:o|a|os|as|il|la|el|le|dem|der|den|an|to|my colleague|our)\s+)?`;
const role =
  '(?:[Dd]irector|[Mm]anager|[Ee]ditor|[Bb]oss|[Oo]wner|[Aa]gent|[Hh]ead of \\w+|[Ll]ead|[Cc]ollega|[Cc]olega|[Cc]ollègue)';
const referred = new RegExp(
  String.raw`(?:^|[\s(:,;–-])(?:${anyCase(before)}|${role},?)(?:\s*:)?\s+${article}${person}`,
  'gmu',
);
const copied = new RegExp(
  String.raw`(?:[Mm]ets|[Ss]etze|[Nn]ehme|[Mm]etto|[Pp]ongo|[Pp]onho)\s+${person}\s+(?:en copie|in (?:CC|Cc|cc|Kopie|copia)|en copia|em cópia)`,
  'gu',
);
const called = new RegExp(
  String.raw`^(${full_name})\s*(?:[,:–?-]|\?\?)\s*(?:can|could|do you|over to|is this|one|see|please|tu|te|ti|peux|puedes|puoi|pode|schau|übern|ist das|was für|c[’']est|esto|isto|questa)`,
  'gmu',
);
const at_sign = new RegExp(String.raw`(?:^|\s)[+@]\s?(${full_name})`, 'gmu');
const in_charge = new RegExp(
  String.raw`${person}\s*(?:(?:\([^)]{0,60}\)|,[^,.]{0,40},)\s*)?(?:,\s*)?(?:${after})`,
  'gu',
);
const titled = new RegExp(String.raw`(?:^|[\s(])(${title}{1,2}${full_name})`, 'gu');
const address = /[\p{L}\d_.+-]{1,64}@[\p{L}\d-]{1,63}(?:\.[\p{L}\d-]{1,63}){1,8}/u;

const no_names = new Set(
  `I I'm We You He She It They The This That Our My Your Please Thanks Thank Hi Hello Dear Regards Marketing Sales Partnerships Support
  Editorial Press Procurement Monday Tuesday Wednesday Thursday Friday Saturday Sunday Instagram YouTube Gmail Google CEO CMO HR IT PR
  Sie Ihnen Ihre Ihren Wir Ich Abteilung Agentur Redaktion Zentrale Chef Chefin Werbung Kooperationen Adresse Mail Firma Blog Technik
  Info Bonjour Merci Hola Gracias Ciao Grazie Olá Obrigado`.split(/\s+/),
);

/** Alternatives whose first letter may be a capital, as at the beginning of a sentence. */
function anyCase(alternatives: string): string {
  return alternatives.replace(/(?<=^|\|)(\p{Ll})/gu, (letter) => `[${letter}${letter.toUpperCase()}]`);
}

/** The colleague whom a text names, and the address that it gives for one; null where it gives neither. */
export function namedIn(text: string): Named | null {
  const short = text.slice(0, most_characters);
  const email = address.exec(short)?.[0].replace(/(?<![.-])[.-]+$/, '');
  const name = nameIn(email === undefined ? short : short.replaceAll(email, ' '));
  if (name === undefined && email === undefined) return null;
  return { ...(name !== undefined && { name }), ...(email !== undefined && { email }) };
}

function nameIn(text: string): string | undefined {
  for (const pattern of [in_charge, copied, at_sign, referred, called, titled]) {
    for (const match of text.matchAll(pattern)) {
      const found = cleaned(match[1] as string);
      const rest = text.slice(match.index + match[0].length);
      if (found !== undefined && !gone.test(rest)) return found;
    }
  }
  return undefined;
}

/** Without words that only begin a sentence or name a department. */
function cleaned(found: string): string | undefined {
  const words = found.trim().split(/\s+/);
  while (words.length > 0 && no_names.has((words[0] as string).replace(/[.,]$/, ''))) words.shift();
  const end = words.findIndex((word) => no_names.has(word.replace(/[.,]$/, '')));
  const name = (end < 0 ? words : words.slice(0, end)).join(' ').replace(/(?<![.,'’-])[.,'’-]+$/, '');
  return new RegExp(`^${title}*$`, 'u').test(`${name} `) || name.length < 2 ? undefined : name;
}
