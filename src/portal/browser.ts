/** A browser as people call it, from what it says of itself: `Firefox, Windows`. */

/** The first that is found: others name themselves after Chrome and Safari, too. */
const browsers: [pattern: RegExp, name: string][] = [
  [/\bEdg/, 'Edge'],
  [/\bOPR\//, 'Opera'],
  [/\bFirefox\//, 'Firefox'],
  [/\bChrom/, 'Chrome'],
  [/\bSafari\//, 'Safari'],
];
const systems: [pattern: RegExp, name: string][] = [
  [/\bAndroid\b/, 'Android'],
  [/\biP(?:hone|ad)\b/, 'iOS'],
  [/\bWindows\b/, 'Windows'],
  [/\bMac OS X\b/, 'macOS'],
  [/\bLinux\b/, 'Linux'],
];

export function browserOf(user_agent: string): string {
  const names = [browsers, systems].flatMap((all) => all.find(([pattern]) => pattern.test(user_agent))?.[1] ?? []);
  return names.length > 0 ? names.join(', ') : user_agent.slice(0, 40) || '–';
}
