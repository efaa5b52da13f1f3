import { detectAll } from 'tinyld';
import { vocabularies } from './phrases.ts';
import { type Reading, read, wordsWithin } from './words.ts';

/** Words that are short and frequent, and those that short replies consist of, in their normal form. A word may stand in several. */
const frequent: Record<string, string> = {
  en: 'the and is are was you your we our us it its im ive id ill dont not no yes yeah yep nope ok for with from this that to of in on at as be been have has do does can could would will what how who when where why please thanks thank thx hi hey hello sure pass not interested but sorry me my i a if so just never again later maybe off list remove unsubscribe stop much pay sounds good great love wrong person',
  de: 'der die das und ist sind war nicht kein keine keinen nein ja gerne gern ich wir uns unser mich mir sie ihr ihre ihnen du dich euch ein eine einen einem mit von fur auf aus bei zu zum zur im am an es den dem des wie was wer wo wann warum wenn aber auch noch nur schon bitte danke hallo moin guten tag hier dann jetzt erst spater leider interesse haben hat habe werden wird bin mal doch passt grusse gruss lg mfg abmelden verteiler loschen falsche adresse klar super',
  fr: 'le la les des du de et est sont pas ne non oui je nous vous on mon ma mes notre nos votre vos un une avec pour par sur dans au aux ce cette ces qui que quoi comment combien quand pourquoi ou si mais aussi encore plus tres bien bonjour bonsoir salut merci svp sil plait suis avez etes ai ete pourquoi desole interesse interessee volontiers liste desabonner desinscrire retirer moi toi elle il accord ca c est j n d l qu',
  es: 'el la los las de del y es son no si yo nosotros me nos os le les mi mis su sus nuestro nuestra un una unos con por para en al que quien como cuanto cuando donde pero tambien ya muy mas hola buenos buenas dias tardes gracias favor estoy esta estamos soy somos tengo tenemos hay ser interesa interesado ahora luego vale claro perdon lo siento baja correos quiero puedo hasta sobre eso esto persona equivocada dejen dejad vuestro vuestra',
  it: 'il lo la i gli le di del della dei delle e è sono non no si io noi mi ci vi mio mia nostro nostra un una uno con per in nel al che chi come quanto quando dove perche ma anche gia molto piu ciao buongiorno salve grazie prego per favore sto siamo ho abbiamo ha essere interessa interessato adesso ora dopo certo va bene scusi spiace cancellatemi lista questo questa voi vostra vostro lei basta persona sbagliata volentieri',
  pt: 'o a os as de do da dos das e é nao sim eu nos me meu minha nosso nossa um uma uns com por para pra em no na ao que quem como quanto quando onde porque mas tambem ja muito mais ola oi bom boa dia tarde obrigado obrigada por favor estou esta estamos sou somos tenho temos ha ser interessa interessado agora depois depois claro desculpe lamento voces voce vossa vosso seu sua isso isto lista remover pessoa errada ta tudo bem gostaria descadastrar',
};
const languages = Object.keys(frequent);
/** The languages of each word, among the frequent ones and those of the lexicon. */
const languages_of_word = new Map<string, string[]>();
for (const language of languages) {
  const words = [...(frequent[language] as string).split(' '), ...(vocabularies.get(language) ?? [])];
  for (const word of new Set(words)) languages_of_word.set(word, [...(languages_of_word.get(word) ?? []), language]);
}
/** Below this many words tinyld's answer is worth little, and the languages of this table are all that is considered. */
const few_words = 6;
const most_characters = 1_000;

/** The language of a text (ISO 639-1); null where nothing shows it. */
export function languageOf(text: string): string | null {
  const short = text.slice(0, most_characters);
  const words = wordsIn(read(short));
  if (words.length === 0) return null;
  const scores = scoresOf(words);
  const [first = '', second = ''] = ranked(scores);
  const best = scores.get(first) ?? 0;
  const next = scores.get(second) ?? 0;
  // No statistics are needed when a third of the words are frequent words of one language.
  if (best > next * 1.3 && (words.length < few_words || best >= words.length / 3)) return first;
  const detected = detectAll(short).filter(({ lang }) => words.length >= few_words || languages.includes(lang));
  for (const { lang, accuracy } of detected) scores.set(lang, (scores.get(lang) ?? 0) + accuracy * words.length * 0.5);
  const [answer = null] = ranked(scores);
  return answer;
}

/** Letters of other scripts than the Latin one. */
const other_script = /(?=\p{L})\P{Script=Latin}/gu;
const dense_script = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}]/gu;

/** Returns whether more letters are of another script than of the Latin one. */
export const isOtherScript = (text: string): boolean => {
  const short = text.slice(0, most_characters);
  const count = (pattern: RegExp): number => short.match(pattern)?.length ?? 0;
  // A sign of Chinese, Japanese and Korean says as much as three letters.
  return count(other_script) + 2 * count(dense_script) > count(/\p{Script=Latin}/gu);
};

/** Returns whether statistics of letters say that a text is in a language with a lexicon. */
export const resemblesKnown = (text: string): boolean =>
  vocabularies.has(detectAll(text.slice(0, most_characters))[0]?.lang ?? '');

/** The likeliest language of a text that is in none with a lexicon; null where nothing shows it. */
export function foreignLanguage(text: string): string | null {
  const [likeliest] = detectAll(text.slice(0, most_characters)).filter(
    ({ lang }) => lang.length === 2 && !vocabularies.has(lang),
  );
  return likeliest && likeliest.accuracy > 0.05 ? likeliest.lang : null;
}

/** The languages whose phrases may be looked for in a text: the likeliest, and those that are nearly as likely. */
export function likelyLanguages(reading: Reading): string[] {
  const words = wordsIn(reading).slice(0, 200);
  const scores = scoresOf(words);
  const [first = ''] = ranked(scores);
  const best = scores.get(first) ?? 0;
  const close = words.length < few_words ? 0.75 : 0.85;
  return languages.filter((language) => (scores.get(language) ?? 0) >= best * close);
}

const wordsIn = (reading: Reading): string[] => wordsWithin(reading).map(({ word }) => word);

const ranked = (scores: Map<string, number>): string[] =>
  [...scores].sort((one, other) => other[1] - one[1]).map(([language]) => language);

/** Counts the words of each language in a text; a word of several languages counts a part for each. */
function scoresOf(words: readonly string[]): Map<string, number> {
  const scores = new Map<string, number>();
  for (const word of words) {
    const its = languages_of_word.get(word) ?? [];
    for (const language of its) scores.set(language, (scores.get(language) ?? 0) + 1 / its.length);
  }
  return scores;
}
