// Put into every page of a browser test: finds what is on the screen the way a person does who
// cannot see it, by its role and its name. So looks can change and tests need not.
window.finder = (() => {
  const typed = 'input:not([type]), input[type=text], input[type=password], input[type=url], input[type=email], textarea';
  const natural = {
    alert: '', alertdialog: '', article: 'article', banner: '', button: 'button, summary, input[type=submit]', checkbox: 'input[type=checkbox]', combobox: 'select', complementary: 'aside', dialog: 'dialog', form: '', group: 'fieldset, details',
    heading: 'h1, h2, h3, h4', img: 'img', link: 'a[href]', list: 'ul, ol', listitem: 'li', log: '', main: 'main', menu: '', menuitem: '', menuitemcheckbox: '', menuitemradio: '', navigation: 'nav', note: '', option: 'option', radio: 'input[type=radio]',
    region: 'section', searchbox: 'input[type=search]', separator: 'hr', slider: 'input[type=range]', spinbutton: 'input[type=number]', status: '', switch: '', tab: '', tabpanel: '', table: 'table', textbox: typed, tree: '', treeitem: '',
  };
  const text = (e) => {
    let all = '';
    for (const n of e.childNodes) {
      if (n.nodeType === Node.TEXT_NODE) all += n.data;
      else if (n.nodeType === Node.ELEMENT_NODE && n.ariaHidden !== 'true' && !n.hidden) all += n.ariaLabel ?? n.alt ?? ` ${text(n)} `;
    }
    return all;
  };
  const tidy = (s) => s.replace(/\s+/g, ' ').trim();
  const name = (e) => {
    if (e.ariaLabel) return tidy(e.ariaLabel);
    const by = e.getAttribute('aria-labelledby');
    if (by) return tidy(by.split(/\s+/).map((id) => { const of = document.getElementById(id); return of ? text(of) : ''; }).join(' '));
    const legend = e.matches('fieldset') && e.querySelector(':scope > legend');
    if (legend) return tidy(text(legend));
    if (e.labels?.length) return tidy([...e.labels].map(text).join(' '));
    return tidy(e.alt ?? text(e));
  };
  const seen = (e) => e.checkVisibility({ checkVisibilityCSS: true }) && !e.closest('[inert], [aria-hidden="true"]');
  const fits = (e, wanted) => wanted === undefined || (wanted instanceof RegExp ? wanted.test(name(e)) : name(e) === wanted);
  const all = (role, wanted, within = document) => {
    if (!(role in natural)) throw new Error(`the finder knows no role ${role}`);
    const found = [...within.querySelectorAll(`[role="${role}"]${natural[role] && `, :is(${natural[role]}):not([role])`}`)];
    return found.filter((e) => seen(e) && fits(e, wanted));
  };
  /** Whether what is at a place is what one means. */
  const over = (e, there) => there && (e.contains(there) || Boolean(e.labels) && [...e.labels].some((l) => l.contains(there)));
  let aim = {};
  /** The middle of what one would click, once it stands still and nothing lies over it. */
  const spot = async (role, wanted, at) => {
    const e = all(role, wanted).at(at);
    if (!e || e.disabled || e.ariaDisabled === 'true') return null;
    e.scrollIntoView({ block: 'nearest', inline: 'nearest' });
    const before = e.getBoundingClientRect();
    await new Promise((done) => { requestAnimationFrame(() => requestAnimationFrame(done)); });
    if (!e.isConnected) return null;
    const box = e.getBoundingClientRect();
    if (Math.abs(box.x - before.x) + Math.abs(box.y - before.y) > 1) return null;
    const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
    if (!over(e, document.elementFromPoint(x, y))) return null;
    aim = { at: e };
    return { x, y };
  };
  /** Whether the click came where it was aimed at. The page may have moved meanwhile: then it has seen nothing of the click. */
  const hit = () => {
    const { missed } = aim;
    aim = {};
    return missed !== true;
  };
  for (const type of ['pointerdown', 'mousedown', 'pointerup', 'mouseup', 'click', 'auxclick', 'contextmenu']) {
    window.addEventListener(type, (event) => {
      if (!aim.at) return;
      aim.missed ??= !over(aim.at, event.target);
      if (!aim.missed) return;
      event.preventDefault();
      event.stopImmediatePropagation();
    }, true);
  }
  /** Waits until nothing moves or changes its colour, but what always does. It looks at every frame: the promise that an animation has of its end may never settle. */
  const still = async (seconds = 10) => {
    const end = performance.now() + seconds * 1000;
    for (let calm = 0; calm < 2; calm++) {
      await new Promise((done) => { requestAnimationFrame(done); });
      const moving = document.getAnimations().filter((a) => a.playState === 'running' && a.effect.getTiming().iterations !== Infinity);
      if (moving.length > 0) calm = -1;
      if (moving.length > 0 && performance.now() > end) throw new Error(`still moving after ${seconds} s: ${moving.map((a) => `${a.animationName ?? a.transitionProperty} of ${a.effect.target?.outerHTML.slice(0, 100)}`).join(', ')}`);
    }
  };
  return { all, name, spot, hit, still, one: (role, wanted) => all(role, wanted)[0] };
})();
