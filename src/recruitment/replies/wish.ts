/** Whether a text that sounds like a wish to be taken off says something against it. Then a person decides. */
const removal =
  '(?:unsubscrib|remove me|take me off|off (?:the|your) list|stop (?:writing|emailing|sending)|abmelden|vom verteiler|désabonn|désinscri|darme de baja|dar de baja|borr|cancell|disiscri|sair da lista|descadastr|remover)';
const doubts = [
  new RegExp(
    String.raw`\b(?:not|don[’']?t|do not|never|nicht|kein|ne|pas|no|non|não|nao)\b[^.!?\n]{0,25}${removal}`,
    'iu',
  ),
  /\bstop by\b|\bremove (?:the|this|that|your)\b|\btake (?:it|this|that) off\b/iu,
  /^[\s"“]{0,5}(?:yes|yep|yeah|sure|sounds (?:great|good)|great|ja|gerne?|oui|sí|sì|sim)\b/iu,
  /https?:|\+unsubscribe@|\byou (?:get|received?|are receiving) (?:this|our)\b|\bfrom all future\b|\bif you (?:do not|don[’']t|no longer) (?:want|wish)\b/iu,
];

export const contradictsWish = (text: string): boolean => doubts.some((doubt) => doubt.test(text.slice(0, 8_000)));
