/** Pages that are of nobody: of a server, a host or a seller of domains, whatever status they come with. */
import { type Place, walkHtml } from '../pages/html.ts';
import { fold, type Page } from '../pages/page.ts';

const not_found =
  /\b404\b|(?:page|content|link|store|shop|site) (?:(?:can.?t|can ?not|could ?n.?t) be found|is(?: ?n.?t| not) available|is (?:currently|temporarily) unavailable|(?:has moved or |is )?no longer (?:exists|available))|^(?:error |http )?(?:403|500|502|503|504)(?:$|[ :-]{1,3}(?:forbidden|internal server|bad gateway|service|gateway time))|^(?:403 )?forbidden$|^access denied$|internal server error|bad gateway|^service (?:temporarily )?unavailable|unavailable for scheduled maintenance|error code:? 5\d\d|\| 5\d\d: |^just a moment[.…]{0,3}$|checking your browser|(?:page|site|seite) (?:was |could )?not (?:be )?found|^not found|page (?:doesn.?t|does not) exist|nicht gefunden|introuvable|page non trouvee|(?:pagina|recurso) no (?:encontrad|existe)|no se (?:ha )?encontr|non trovata|nao (?:foi )?encontrad|niet gevonden|nie znalezion|nie istnieje|(?:hittades|finns) inte|ikke fun[nd]et|ei loytynyt|nenalezen|nem talalhato|bulunamadi|не найден|見つかりません|찾을 수 없|找不到|未找到/;
const for_sale =
  /(?:buy|acquire|purchase|inquire about|make an offer (?:for|on)) this domain|domain(?: name)?,? (?:[a-z0-9.-]{1,70},? )?(?:is|may be|might be|could be) (?:now )?(?:for sale|available for (?:sale|purchase)|parked)|parked (?:free|domain)|domain parking|domain (?:steht|ist) (?:zum verkauf|zu verkaufen|geparkt)|domain (?:zu )?(?:kaufen|verkaufen)|domaine est (?:a vendre|en vente)|dominio (?:esta )?(?:en|a la) venta|dominio (?:e )?in vendita|dominio (?:esta )?a venda|domein (?:is|staat) te koop|domen[ay] (?:jest )?na sprzedaz|домен прода|ドメイン.{0,10}販売|^get this domain|^[a-z0-9-]{1,63}\.[a-z]{2,10} is for sale\b|(?:this|premium|the) (?:web)?site (?:is|may be) for sale|premium domain is available|(?:seite|website) steht zum verkauf|this domain(?: name)? (?:has expired|was registered|has (?:just |recently )?been registered)/;
const not_set_up =
  /^welcome to (?:nginx|openresty|caddy|centos|apache)|apache2? .{0,20}default page|(?:http server|nginx) test page|^test page for|^iis (?:windows|\d)|^it works!?$|^index of \/|(?:plesk|cpanel|directadmin|ispconfig|domain|site|web server).{0,20} default (?:web ?)?page|^default web site page|(?:account|website|site|hosting) (?:has been |is |was )?suspended|^(?:this )?(?:website|site|domain) (?:is )?(?:not (?:published|configured|set up)|expired)|domain (?:is ?n.?t|is not) (?:yet )?connected|hier entsteht (?:eine|in kurze)|diese (?:domain|website) (?:wurde|ist) .{0,30}(?:registriert|nicht (?:erreichbar|verfugbar))/;

/** A page with more on it is somebody's, whatever words stand there. */
const most_characters = 3_000;
const most_of_a_heading = 200;

/** Returns the reason why nobody is to be found on a page, as a sentence. Undefined: somebody may be. */
export function nobodysReason(html: string, { title, text }: Pick<Page, 'title' | 'text'>): string | undefined {
  if (text.length > most_characters) return undefined;
  const lines = [title ?? '', ...headingsOf(html)].map(fold);
  const says = (words: RegExp, ...texts: string[]) => texts.some((each) => words.test(each));
  if (says(for_sale, ...lines, fold(text))) return 'The domain is parked or for sale.';
  if (says(not_set_up, ...lines)) return 'The website is not set up.';
  return says(not_found, ...lines) ? 'The website says that there is no such page.' : undefined;
}

/** The first ones. */
function headingsOf(html: string): string[] {
  const headings: string[] = [];
  let is_within = false;
  walkHtml(html, {
    open(name) {
      if (!/^h[12]$/.test(name) || headings.length >= 3) return;
      is_within = true;
      headings.push('');
    },
    text(text: string, { is_hidden }: Place) {
      if (!is_within || is_hidden) return;
      const before = headings.pop() ?? '';
      headings.push(`${before}${text}`.slice(0, most_of_a_heading));
    },
    close(name) {
      if (/^h[12]$/.test(name)) is_within = false;
    },
  });
  return headings.map((heading) => heading.replace(/\s+/g, ' ').trim());
}
