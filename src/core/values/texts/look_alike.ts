/** Texts that people tell apart by sight: codes, link values, names of tags, addresses. */

/** Letters of these scripts look alike. */
const alike = [
  /\p{Script=Latin}/u,
  /\p{Script=Cyrillic}/u,
  /\p{Script=Greek}/u,
  /\p{Script=Armenian}/u,
  /\p{Script=Cherokee}/u,
  /\p{Script=Lisu}/u,
];

/** Returns whether letters of one script may be taken for those of another one. */
export const mixesScripts = (text: string): boolean => alike.filter((script) => script.test(text)).length > 1;

/** The text as it is seen: in compatible forms, with one dash for all, and without white space at its ends. */
export const asSeen = (text: string): string =>
  text
    .normalize('NFKC')
    .replaceAll(/[\p{Pd}\u2212]/gu, '-')
    .replaceAll(/\s+/g, ' ')
    .trim();

/** Characters that join signs of an emoji, or part letters that would be joined, are visible by their effect. */
const joining =
  /(?<=\p{Extended_Pictographic}\p{Emoji_Modifier}?)\ufe0f?(?:\u200d(?=\p{Extended_Pictographic}))?|(?<=[\p{Script=Arabic}\p{M}])[\u200c\u200d](?=\p{L})/gu;
const cyrillic_as_latin = /^[АВЕЅІЈКМНОРСТУХҺԌԚԜӀ]+$/iu;
const greek_as_latin = /^[ΑΒΕΖΗΙΚΜΝΟΡΤΥΧ]+$/iu;

/** Returns the reason why a text may be taken for another one by sight; undefined where it may not. */
export function mistakable(text: string): string | undefined {
  const plain = text.replaceAll(joining, '');
  const letters = plain.replaceAll(/\P{L}/gu, '');
  if (/\p{Default_Ignorable_Code_Point}/u.test(plain)) return 'must not contain invisible characters';
  if (/\p{Script=Inherited}/u.test(plain)) return 'must not contain accents that belong to no letter';
  if (/[^\P{Nd}0-9]/u.test(plain)) return 'must not contain digits other than 0 to 9';
  if (mixesScripts(plain)) return 'must not mix letters of scripts that look alike';
  if (cyrillic_as_latin.test(letters) || greek_as_latin.test(letters))
    return 'must not be of Cyrillic or Greek letters alone that look like Latin ones: type it in Latin letters';
  return undefined;
}
