/** Finds the end of the written text: separators, and the lines that mail programs add. */

/** A line of nothing but separators: `-- `, `___`, `***`, `ᐧ`. */
export const isDelimiter = (line: string): boolean =>
  line.length < 200 && /^\s*(?:[-–—_*#~=+ᐧ•·]{2,}|ᐧ|[-–—])\s*$/u.test(line);

const device =
  '(?:i ?phone|i ?pad|i ?pod|i ?os|mac ?book|mac|apple watch|android|samsung|galaxy|huawei|xiaomi|pixel|nokia|lumia|windows|blackberry|mobile|smartphone|handy|mobil\\p{L}*|t[ée]l[ée]phone|tel[ée]fono|m[óo]vil|cellulare|telem[óo]vel|celular|phone|tablet|outlook|yahoo|gmail|gmx|web\\.de|mail|proton\\p{L}*|thunderbird|orange|free|bluemail|spark|zoho|mailo?|aquamail|tutanota|fastmail|hey|aol|t-online|posteo|vodafone|orange)';
const mobile = new RegExp(
  `^[\\s<\\[(*]*(?:${[
    `(?:sent|written|typed|posted|sent securely) (?:from|via|with|using|by|on)\\b.{0,40}\\b${device}\\b.{0,60}`,
    `(?:sent from|sent via) \\S.{0,40}`,
    `get (?:outlook|bluemail|yahoo|spark) for\\b.{0,80}`,
    `(?:download|try) \\S{1,20} (?:for|app)\\b.{0,60}`,
    `(?:von|mit|aus|[üu]ber) (?:mein(?:em|er) |der |dem )?.{0,40}\\b${device}\\b.{0,40} (?:gesendet|geschickt|verschickt|versendet|geschrieben)\\.?`,
    `(?:gesendet|verschickt|versendet|geschickt) (?:von|mit|aus|[üu]ber)\\b.{0,60}`,
    `diese (?:nachricht|e-?mail|mail) wurde (?:von|mit)\\b.{0,80} (?:gesendet|verschickt)\\.?`,
    `envoy[ée]e? (?:de|depuis|avec|par|[àa] partir de)\\b.{0,60}`,
    `t[ée]l[ée]charge[rz] outlook\\b.{0,60}`,
    `enviad[oa] (?:desde|con|do|da|de|a partir do|pelo|via|com|por)\\b.{0,60}`,
    `obtener outlook\\b.{0,60}|obter (?:o )?outlook\\b.{0,60}|baixe o outlook.{0,60}`,
    `inviat[oa] (?:da|dal|dalla|con|tramite)\\b.{0,60}`,
    `(?:scarica|ottieni) outlook\\b.{0,60}|outlook f[üu]r (?:ios|android)\\b.{0,60}|holen sie sich outlook.{0,60}`,
    `verzonden (?:vanaf|met|vanuit|via)\\b.{0,60}`,
    `skickat fr[åa]n\\b.{0,60}|sendt fra\\b.{0,60}|отправлено (?:с|из|от)\\s.{0,60}|发自我的.{0,40}|從我的.{0,40}|lähetetty \\S.{0,40}|wys[łl]ane z\\s.{0,40}|enviat des de\\b.{0,60}`,
    `my .{1,20} sent this.{0,40}|.{0,30}please excuse (?:any |my )?(?:typos|brevity|spelling).{0,60}`,
  ].join('|')})[>\\])*.]*\\s*$`,
  'iu',
);

/** `Sent from my iPhone`, in the languages of their users. */
export const isMobileSignature = (line: string): boolean => line.length < 160 && mobile.test(line);

const closing =
  /^\s*(?:(?:many |kind |best |warm |kindest |warmest |with (?:kind |best |warm )?)?(?:regards|wishes|thanks|thank you|cheers|greetings)|sincerely|yours(?: \p{L}+)?|best|all the best|take care|cordially|respectfully|ta|br|kr|rgds|(?:mit )?(?:freundlich\p{L}*|besten?|lieben?|viele[nr]?|herzlich\p{L}*|sch[öo]ne[nr]?) gr[üu](?:ß|ss)\p{L}*|gr[üu](?:ß|ss)e?|mfg|vg|lg|danke\p{L}*|(?:bien )?cordialement|(?:bien )?[àa] vous|amicalement|(?:meilleures|sinc[èe]res) salutations|salutations|bonne (?:journ[ée]e|soir[ée]e)|merci(?: .{0,20})?|(?:un )?(?:cordial )?saludos?(?: \p{L}+)?|atentamente|gracias|un abrazo|(?:cordiali|distinti|cari) saluti|saluti|grazie|un saluto|(?:com os melhores )?cumprimentos|atenciosamente|abra[çc]os?|obrigad[oa]|att|met vriendelijke groet\p{L}*|groet\p{L}*|h[äa]lsningar|mvh)\s*(?:[,.!;–—-]+\s*)?(?:\p{Emoji_Presentation}\s*)*$/iu;
const contact = /(?:\+?\d[\d ()./-]{6,}\d|https?:|www\.|[^\s@]@[^\s@]+\.\p{L}{2,}|\|)/u;
const longest_block = 12;

/** The line of `Kind regards` that the last lines hang on, and where contact data begin behind the name. */
export function findClosing(lines: readonly string[]): { closing: number; contact: number } | undefined {
  const from = Math.max(0, lines.length - longest_block);
  for (let at = lines.length - 1; at >= Math.max(1, from); at -= 1) {
    if (!closing.test(lines[at] as string)) continue;
    const rest = lines.slice(at + 1);
    if (rest.some((line) => line.length > 120)) return undefined;
    const name = rest.findIndex((line) => line.trim() !== '');
    const data = rest.findIndex((line, index) => index > name && contact.test(line));
    const end = name < 0 || data < 0 ? lines.length : at + 1 + name + 1;
    return { closing: at, contact: end };
  }
  return undefined;
}
