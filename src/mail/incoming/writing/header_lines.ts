/** The header that Outlook and its like write above what they quote, in the languages of their users. */
const names: Record<'from' | 'to' | 'date' | 'subject' | 'other', string> = {
  from: 'from|von|de|da|van|fr[åa]n|fra|od|от(?: кого)?|отправитель|发件人|寄件者|差出人|보낸 사람|expéditeur|remitente|remetente|mittente|absender|lähettäjä|kimden|g[öo]nderen|felad[óo]|από|від|odes[íi]latel|expeditor|de la|t[ừu]|dari|보낸사람|מאת|من|จาก|प्रेषक',
  to: 'to|an|[àa]|para|aan|till|til|do|кому|收件人|宛先|받는 사람|destinataire|destinatario|destinat[áa]rio|empf[äa]nger|kime|al[ıi]c[ıi]|c[íi]mzett|προς|komu|c[ăa]tre|đ[ếe]n|kepada|받는사람|אל|إلى|ถึง|a',
  date: 'sent(?: at)?|date|gesendet(?: am)?|datum|envoy[ée](?: le)?|enviad[oa](?: el| em)?|fecha|inviato|data|verzonden|skickat|sendt|wys[łl]ano|отправлено|дата|发送时间|日期|寄件日期|送信日時|보낸 날짜|date d.envoi|l[äa]hetetty|g[öo]nderme|d[áa]tum|dato|g[öo]nderme tarihi|g[öo]nderildi|tarih|elk[üu]ldve|odesl[áa]no|odoslan[ée]|trimis|dat[ăa]|στάλθηκε|ημερομηνία|надіслано|đã g[ửu]i|ng[àa]y|dikirim|tanggal|发送日期|보낸날짜|נשלח|תאריך|تاريخ|تم الإرسال|วันที่',
  subject:
    'subject|betreff|objet|asunto|oggetto|assunto|onderwerp|[äa]mne|emne|temat|тема|主题|主旨|件名|제목|aihe|konu|t[áa]rgy|p[řr]edm[ěe]t|predmet|subiect|θέμα|chủ đề|subjek|perihal|主題|נושא|الموضوع|เรื่อง',
  other:
    'cc|kopie|copie|copia|c[óo]pia|bcc|cci|cco|ccn|reply-to|antwort an|r[ée]pondre [àa]|responder a|rispondi a|importance|priority|priorit[äa]t|attachments?|anlagen?|wichtigkeit|message-id|копия|organi[sz]ation',
};
export type HeaderName = keyof typeof names;

const patterns = Object.entries(names).map(
  ([name, words]) =>
    [
      name as HeaderName,
      new RegExp(`^[\\s>*_]{0,20}(?:${words})\\s*[*_]{0,2}\\s?[:：][*_]{0,2}(?:\\s|$|<|"|\\p{L}|\\d)`, 'iu'),
    ] as const,
);

/** Returns the name of a header line; undefined where it is none. */
export const headerName = (line: string): HeaderName | undefined =>
  line.length < 2_000 ? patterns.find(([, pattern]) => pattern.test(line))?.[0] : undefined;

/**
 * Returns whether a header of a quoted mail begins here: at least three of its lines follow each other, or two of which one names the writer and the
 * other the subject or the date. Long lists of recipients run over several lines.
 */
export function beginsHeader(lines: readonly string[], at: number): boolean {
  const first = headerName(lines[at] as string);
  if (first === undefined || first === 'other') return false;
  const seen = new Set<HeaderName>();
  let between = 0;
  for (const line of lines.slice(at, at + 14)) {
    const name = headerName(line);
    if (name) seen.add(name);
    else if (line.replace(/[\s>]/g, '') === '' || ++between > 4) break;
  }
  const has_topic = seen.has('subject') || seen.has('date');
  return seen.size >= 3 ? has_topic : seen.size === 2 && first === 'from' && has_topic;
}
