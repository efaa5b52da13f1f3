import { oneLine } from './fields.ts';

/** Letters of these scripts look alike. */
const alike = [
  /\p{Script=Latin}/u,
  /\p{Script=Cyrillic}/u,
  /\p{Script=Greek}/u,
  /\p{Script=Armenian}/u,
  /\p{Script=Cherokee}/u,
];

/** What customers type: no two codes look the same. Codes of before are kept as they are. */
export const typedCode = oneLine(64)
  .overwrite((code) => code.normalize('NFKC'))
  .max(64)
  .refine((code) => !/\p{Default_Ignorable_Code_Point}/u.test(code), 'must not contain invisible characters')
  .refine(
    (code) => alike.filter((script) => script.test(code)).length < 2,
    'must not mix letters of scripts that look alike',
  );
