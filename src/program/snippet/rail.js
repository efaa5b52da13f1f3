/**
 * Rail's script for the pages of a website: records through whom a visitor came, and hands the click to checkouts. It is served as it stands
 * here, without its comments, which are block comments, and indentation. Nothing in it may throw into the page, which works as if the script were not there when Rail cannot be reached.
 *
 * @typedef {{ click_id: string | null, expires_at: string | null }} Tracked the answer of the service
 * @typedef {{ param?: string, value?: string, rail_click?: string }} Arrival what the address of a page names
 */
(() => {
  const d = document;
  const w = /** @type {any} */ (window);
  const me = /** @type {HTMLScriptElement} */ (d.currentScript || d.querySelector('script[data-key^=rail_pk_]'));
  const queued = w.Rail || [];
  /* An element of the page with this id has a method `click`, and no `lead`. */
  if (!me || queued.lead) return;
  const name = 'rail_click';
  const data = me.dataset;
  const base = me.src.replace(/[^/]*$/, '');
  /** @param {string | undefined} list @param {string} usual */
  const words = (list, usual) => (list || usual).split(/[\s,]+/).filter(Boolean);
  /** Runs what may fail in some browser, or with some content of the page. @template T @param {() => T} work @returns {T | undefined} */
  const attempt = (work) => {
    try {
      return work();
    } catch {}
  };
  const params = attempt(() => words(data.params, 'ref via').map(decodeURIComponent)) || [];
  const domains = words(data.domains, '');
  const cookieless = data.consent === 'cookieless';
  const seen_ms = 18e5;
  const required = data.consent === 'required' || w.navigator.globalPrivacyControl;

  /** @param {string | null | undefined} text */
  const click_in = (text) => (/^clk_[a-z0-9]{26}$/.test(text || '') ? text : undefined);
  const cookie = () => click_in(attempt(() => (d.cookie.match(/(?:^|; )rail_click=(\w+)/) || [])[1]));
  /** The storage of a kind, which a browser may refuse. @param {'localStorage' | 'sessionStorage'} kind */
  const storage = (kind) => attempt(() => w[kind]);

  /** @type {boolean | 'session'} */
  let consent = !cookieless && (!required || !!cookie());
  /** The visitor's click, which there is with consent only; or the empty text. */
  let click = cookie() || click_in(attempt(() => storage('sessionStorage')[name])) || '';
  if (click && !consent) consent = 'session';
  /** @type {Arrival | undefined} an arrival that waits for consent */
  let waiting;
  /** @type {Record<string, number>} when each arrival was recorded, by its text */
  let seen = {};
  /** The clicks that links and checkouts have from here: they follow the visitor's, and what else stands there stays. @type {Record<string, number>} */
  const handed = { '': 1 };
  /** @type {Promise<unknown>} ends when nothing is being recorded */
  let busy = Promise.resolve();

  /** @param {string} path @param {object} body @returns {Promise<any>} the answer; a falsy one where there is none within four seconds */
  const send = (path, body) =>
    Promise.race([
      (async () => {
        const answer = await fetch(base + path, {
          method: 'POST',
          body: JSON.stringify({ key: data.key, ...body }),
          keepalive: true,
          credentials: cookieless || consent === 'session' ? 'omit' : 'include',
        });
        return answer.ok && answer.json();
      })(),
      new Promise((done) => setTimeout(done, 4e3)),
    ]).catch(() => null);

  /** Sets a cookie on the longest domain of the page that keeps one. @param {string} value @param {number} seconds */
  const set_cookie = (value, seconds) => {
    const labels = location.hostname.split('.');
    const end = `;path=/;max-age=${seconds};samesite=lax${location.protocol === 'https:' ? ';secure' : ''}`;
    const is_name = /[a-z]$/i.test(location.hostname);
    for (let nth = labels.length - 1; is_name && nth-- > 0; ) {
      const domain = `;domain=${labels.slice(nth).join('.')}`;
      /* biome-ignore lint/suspicious/noDocumentCookie: the other way is not in every browser */
      d.cookie = `${name}=${value}${end}${domain}`;
      if ((cookie() || '') === value) {
        if (value || !d.cookie.includes(`${name}=`)) return;
      }
    }
    /* biome-ignore lint/suspicious/noDocumentCookie: the other way is not in every browser */
    d.cookie = `${name}=${value}${end}`;
  };

  /** @param {Tracked | null} answer */
  const keep = (answer) => {
    const id = click_in(answer?.click_id);
    if (!answer || !id || !consent) return;
    click = id;
    if (consent !== true) attempt(() => (storage('sessionStorage')[name] = id));
    else if (cookie() !== id)
      attempt(() => set_cookie(id, ((Date.parse(answer.expires_at || '') - Date.now()) / 1e3) | 0));
    hand_over();
  };

  /** Records an arrival, unless it was recorded within half an hour. @param {Arrival} arrival */
  const record = (arrival) => {
    if (!consent && !cookieless) {
      waiting = arrival;
      return;
    }
    const kind = consent === true ? 'localStorage' : 'sessionStorage';
    const text = JSON.stringify(arrival);
    const now = Date.now();
    if (consent) seen = { ...attempt(() => JSON.parse(storage(kind).rail_seen)), ...seen };
    if (seen[text] > now - seen_ms || (arrival.rail_click && arrival.rail_click === click)) return;
    for (const old in seen) if (seen[old] < now - seen_ms) delete seen[old];
    seen[text] = now;
    if (consent) attempt(() => (storage(kind).rail_seen = JSON.stringify(seen)));
    const { origin, pathname, search } = location;
    const url = (origin + pathname + search).slice(0, 400);
    const body = { ...arrival, click_id: click, url, referrer: d.referrer.slice(0, 150) || undefined };
    busy = busy
      .then(() => send('v1/c', cookieless ? { ...body, cookieless } : { ...body, click_id: click }))
      .then(keep);
  };

  /** Looks at the address of the page. */
  const arrive = () =>
    attempt(() => {
      const query = new URLSearchParams(location.search);
      const param = params.find((one) => query.get(one));
      const rail_click = click_in(query.get(name));
      if (!param && !rail_click) return;
      const value = param && (query.get(param) || '').slice(0, 64);
      record(cookieless ? { param, value } : { param, value, rail_click });
    });

  /** The parameter by which another page is given the click; undefined where it is not. @param {URL} url */
  const param_for = ({ protocol, hostname, pathname }) =>
    !/^https?:$/.test(protocol)
      ? undefined
      : hostname === 'buy.stripe.com'
        ? 'client_reference_id'
        : /\.chargebee\.com$/.test(hostname) && /^\/hosted_pages\//.test(pathname)
          ? 'cf_rail_click'
          : hostname !== location.hostname && domains.some((one) => `.${hostname}`.endsWith(`.${one}`))
            ? name
            : undefined;

  /** @param {string} address @returns {string | undefined} */
  const decorated = (address) => {
    const url = new URL(address, d.baseURI);
    const param = param_for(url);
    const there = url.searchParams.get(param || '') || '';
    if (!param || there === click || !(handed[there] || (click && param === name))) return;
    url.searchParams.set(param, click);
    return url.href;
  };

  /** Gives the click to a link, or takes it back. @param {any} link */
  const decorate = (link) =>
    attempt(() => {
      const address = decorated(link.href);
      if (address) link.href = address;
    });

  /** Gives the click to links and forms at the moment when they are used. @param {Event} event */
  const leave = (event) =>
    attempt(() => {
      hand_over();
      const target = /** @type {any} */ (event.composedPath()[0]);
      if (event.type === 'submit') {
        const address = decorated(target.getAttribute('action') || location.href);
        const param = address && param_for(new URL(address));
        if (!param) return;
        if (/^post$/i.test(target.getAttribute('method'))) target.setAttribute('action', address);
        else if (!target.querySelector(`[name=${param}]`)) {
          target.append(Object.assign(d.createElement('input'), { type: 'hidden', name: param, value: click }));
        }
        return;
      }
      decorate(event.composedPath().find((/** @type {any} */ node) => node.href && node.matches?.('a,area')));
    });

  /** Gives the click to what checkouts read. */
  const hand_over = () =>
    attempt(() => {
      handed[click] = 1;
      for (const one of d.querySelectorAll('stripe-buy-button,stripe-pricing-table')) {
        const given = one.getAttribute('client-reference-id') || '';
        if (given !== click && handed[given]) one.setAttribute('client-reference-id', click);
      }
      for (const one of /** @type {NodeListOf<HTMLInputElement>} */ (d.querySelectorAll(`input[name=${name}]`)))
        if (click || handed[one.value]) one.value = click;
      const checkout = w.Paddle?.Checkout;
      if (checkout?.open && !checkout.open.rail) {
        const { open } = checkout;
        checkout.open = (/** @type {any} */ options) =>
          open.call(
            checkout,
            click ? { ...options, customData: { rail_click: click, ...options?.customData } } : options,
          );
        checkout.open.rail = 1;
      }
    });

  /** Forgets everything, here and in the cookie that the service has set. */
  const forget = () => {
    const had = click || cookie();
    waiting = undefined;
    click = '';
    seen = {};
    hand_over();
    attempt(() => [].forEach.call(d.links, decorate));
    attempt(() => set_cookie('', 0));
    for (const kind of /** @type {const} */ (['localStorage', 'sessionStorage'])) {
      attempt(() => storage(kind).removeItem('rail_seen'));
      attempt(() => storage(kind).removeItem(name));
    }
    if (had) busy = busy.then(() => send('v1/c', { withdraw: true }));
  };

  const Rail = {
    /** @returns {Promise<string | null>} the visitor's click, for the merchant's own server */
    click: () => busy.then(() => click || null),
    /** @param {{ email?: string, identifier?: string, signature?: string }} lead @returns {Promise<{ recorded: boolean, verified: boolean }>} */
    lead: ({ email, identifier, signature } = {}) =>
      busy
        .then(() => click && send('v1/l', { click_id: click, email, identifier, signature }))
        .then((answer) => answer || { recorded: false, verified: false }),
    /** @param {boolean | 'session'} given */
    consent: (given) => {
      if (cookieless || given === consent) return;
      consent = given;
      if (!given) return forget();
      const arrival = waiting;
      waiting = undefined;
      if (arrival) record(arrival);
      else if (click) busy = busy.then(() => send('v1/c', { click_id: click })).then(keep);
      else arrive();
    },
    /** @param {(rail: any) => void} work runs at once: pages may have queued it before the script was there */
    push: (work) => attempt(() => work(Rail)),
  };
  w.Rail = Rail;

  /** Follows what consent tools say, where consent is required. */
  const follow_tools = () => {
    attempt(() =>
      w.__tcfapi('addEventListener', 2, (/** @type {any} */ tcf, /** @type {boolean} */ ok) => {
        if (!ok || tcf.eventStatus === 'cmpuishown') return;
        Rail.consent(tcf.gdprApplies === false || !!tcf.purpose.consents[1]);
      }),
    );
    w.dataLayer ||= [];
    const layer = w.dataLayer;
    /** @param {any} entry */
    const read = (entry) =>
      attempt(() => {
        if (entry[0] === 'consent' && entry[2].ad_storage) Rail.consent(entry[2].ad_storage === 'granted');
      });
    layer.forEach(read);
    const { push } = layer;
    layer.push = (/** @type {any[]} */ ...entries) => {
      entries.forEach(read);
      return push.apply(layer, entries);
    };
  };

  const begin = () => {
    if (required) attempt(follow_tools);
    arrive();
    hand_over();
    if (w.navigation) w.navigation.addEventListener('navigatesuccess', arrive);
    else {
      for (const method of ['pushState', 'replaceState']) {
        const own = w.history[method];
        w.history[method] = function (/** @type {any[]} */ ...given) {
          const result = own.apply(this, given);
          arrive();
          return result;
        };
      }
      w.addEventListener('popstate', arrive);
    }
    for (const type of ['click', 'auxclick', 'submit']) d.addEventListener(type, leave, true);
    for (const type of ['DOMContentLoaded', 'load']) w.addEventListener(type, hand_over);
    attempt(() => new MutationObserver(() => click && hand_over()).observe(d, { childList: true, subtree: true }));
    [].forEach.call(queued, Rail.push);
  };
  if (/** @type {any} */ (d).prerendering)
    d.addEventListener('prerenderingchange', () => attempt(begin), { once: true });
  else attempt(begin);
})();
