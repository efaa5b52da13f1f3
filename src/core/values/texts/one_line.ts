/** A text in one line, as a subject of an email is: line breaks and control characters become spaces. */
export const inOneLine = (text: string): string => text.replaceAll(/[\s\p{Cc}]+/gu, ' ').trim();
