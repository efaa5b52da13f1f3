/** Words for coupons and discount codes. Data: in lower case, without accents; `*` stands for any ending of the word. */
import { fold } from '../pages/page.ts';

const words_by_language: Record<string, string[]> = {
  en: ['coupon*', 'promo code*', 'promocode*', 'promotional code*', 'discount code*', 'voucher code*', 'voucher*'],
  de: ['gutschein*', 'rabattcode*', 'rabattgutschein*', 'aktionscode*', 'rabattaktion*'],
  fr: [
    'code promo*',
    'codes promo*',
    'bon de reduction',
    'bons de reduction',
    'code de reduction',
    'codes de reduction',
    'code reduction',
    'codes reduction',
  ],
  es: [
    'cupon*',
    'codigo de descuento',
    'codigos de descuento',
    'codigo promocional',
    'codigos promocionales',
    'codigo descuento',
    'codigos descuento',
  ],
  it: ['codice sconto', 'codici sconto', 'buono sconto', 'buoni sconto', 'codice promozionale', 'codici promozionali'],
  pt: [
    'cupom',
    'cupons',
    'cupao',
    'cupoes',
    'codigo de desconto',
    'codigos de desconto',
    'vale-desconto',
    'vales-desconto',
  ],
  nl: ['kortingscode*', 'kortingsbon*', 'actiecode*', 'waardebon*'],
  pl: ['kod rabatowy', 'kody rabatowe', 'kodow rabatowych', 'kupon rabatowy', 'kupony rabatowe', 'kupony'],
  sv: ['rabattkod*'],
  da: ['rabatkode*'],
  no: ['rabattkode*'],
  fi: ['alennuskood*'],
  cs: ['slevovy kod*', 'slevove kod*', 'slevovy kupon*', 'slevove kupon*'],
  tr: ['indirim kodu*', 'indirim kodlari*', 'indirim kuponu*', 'kupon kodu*'],
  ro: ['cod de reducere', 'coduri de reducere', 'cod reducere', 'coduri reducere', 'voucher*'],
  hu: ['kuponkod*', 'kuponok'],
  ru: ['промокод*', 'купон*', 'скидочный код', 'скидочные коды'],
  ja: ['クーポン', '割引コード'],
  ko: ['쿠폰', '할인코드'],
  zh: ['优惠券', '优惠码', '折扣码', '優惠券', '優惠碼'],
};

/** Vouchers that are sold as presents. */
const presents = /geschenk|\bgift|cadeau|\bregalo|\bpresente\b|prezent|darkov|gavekort|presentkort|lahjakort|подароч/;

const alternatives = [...new Set(Object.values(words_by_language).flat())].map((word) =>
  word.replace(/[ -]/g, '[\\s_-]+').replace('*', '\\p{L}{0,12}'),
);
const written_with_spaces = alternatives.filter((word) =>
  /[\p{Script=Latin}\p{Script=Cyrillic}]/u.test(word.replaceAll('\\p{L}', '')),
);
const written_without = alternatives.filter((word) => !written_with_spaces.includes(word));
const coupon_words = new RegExp(
  `(?<![\\p{L}\\p{N}])(?:${written_with_spaces.join('|')})(?![\\p{L}\\p{N}])|${written_without.join('|')}`,
  'u',
);

/** Returns whether a path or a short text, such as a title or a link, names coupons. */
export function namesCoupons(text: string): boolean {
  const folded = fold(text);
  return coupon_words.test(folded) && !presents.test(folded);
}
