/** Names of months and days in English, German, French, Spanish, Italian and Portuguese, without accents, as they begin. */
const month_names: [number, string[]][] = [
  [1, ['january', 'jan', 'januar', 'janner', 'janvier', 'janv', 'enero', 'ene', 'gennaio', 'gen', 'janeiro']],
  [2, ['february', 'feb', 'februar', 'fevrier', 'fevr', 'fev', 'febrero', 'febbraio', 'febb', 'fevereiro']],
  [3, ['march', 'mar', 'marz', 'maerz', 'mrz', 'mars', 'marzo', 'marco']],
  [4, ['april', 'apr', 'avril', 'avr', 'abril', 'abr', 'aprile']],
  [5, ['may', 'mai', 'mayo', 'maggio', 'mag', 'maio']],
  [6, ['june', 'jun', 'juni', 'juin', 'junio', 'giugno', 'giu', 'junho']],
  [7, ['july', 'jul', 'juli', 'juillet', 'juil', 'julio', 'luglio', 'lug', 'julho']],
  [8, ['august', 'aug', 'aout', 'agosto', 'ago']],
  [9, ['september', 'sep', 'sept', 'septembre', 'septiembre', 'setiembre', 'settembre', 'set', 'sett', 'setembro']],
  [10, ['october', 'oct', 'oktober', 'okt', 'octobre', 'octubre', 'ottobre', 'ott', 'outubro', 'out']],
  [11, ['november', 'nov', 'novembre', 'noviembre', 'novembro']],
  [12, ['december', 'dec', 'dezember', 'dez', 'decembre', 'diciembre', 'dic', 'dicembre', 'dezembro']],
];

/** ISO: Monday is 1. */
const day_names: [number, string[]][] = [
  [1, ['monday', 'mon', 'montag', 'mo', 'lundi', 'lunes', 'lunedi', 'segunda-feira', 'segunda']],
  [2, ['tuesday', 'tue', 'tues', 'dienstag', 'mardi', 'martes', 'martedi', 'terca-feira', 'terca']],
  [3, ['wednesday', 'wed', 'mittwoch', 'mercredi', 'miercoles', 'mercoledi', 'quarta-feira', 'quarta']],
  [4, ['thursday', 'thu', 'thur', 'thurs', 'donnerstag', 'jeudi', 'jueves', 'giovedi', 'quinta-feira', 'quinta']],
  [5, ['friday', 'fri', 'freitag', 'vendredi', 'viernes', 'venerdi', 'sexta-feira', 'sexta']],
  [6, ['saturday', 'sat', 'samstag', 'sonnabend', 'samedi', 'sabado', 'sabato']],
  [7, ['sunday', 'sun', 'sonntag', 'dimanche', 'domingo', 'domenica']],
];

const indexed = (names: [number, string[]][]): Map<string, number> =>
  new Map(names.flatMap(([number, words]) => words.map((word) => [word, number] as const)));
const alternatives = (names: [number, string[]][]): string =>
  names
    .flatMap(([, words]) => words)
    .sort((a, b) => b.length - a.length)
    .join('|');

export const months = indexed(month_names);
export const days = indexed(day_names);
export const month_pattern = `(?:${alternatives(month_names)})`;
export const day_pattern = `(?:${alternatives(day_names)})`;
