/** JSON that cannot control the terminal that shows it: `JSON.stringify` escapes U+0000 to U+001F, and this U+007F to U+009F too. */
export const jsonText = (value: object, indent?: number): string =>
  JSON.stringify(value, null, indent).replaceAll(
    /[\u007f-\u009f]/g,
    (control) => `\\u${control.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
