// A tab as a person uses it: by roles and names, with a mouse and a keyboard. A failure
// on the way, in the console or with the page's policy, is collected.
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { tab } from './cdp.mjs';

const file = (path) => readFileSync(fileURLToPath(new URL(path, import.meta.url)), 'utf8');
const finder = file('./finder.js');
const axe = file('../node_modules/axe-core/axe.min.js');

/** How JavaScript in the page writes a value of ours. */
const js = (v) => (v === undefined ? 'undefined' : v instanceof RegExp ? String(v) : JSON.stringify(v));

const keys = {
  Enter: [13, '\r'], Escape: [27], Tab: [9], ArrowUp: [38], ArrowDown: [40], ArrowLeft: [37], ArrowRight: [39], Home: [36], End: [35], Delete: [46], Backspace: [8], ' ': [32, ' '],
};

/** Opens a tab. */
export async function screen(browser, { seconds = 30, ...context } = {}) {
  const complaints = [];
  const page = await tab(browser, complaints, context);
  await page.send('Page.addScriptToEvaluateOnNewDocument', { source: finder });
  await page.send('Emulation.setFocusEmulationEnabled', { enabled: true });
  const until = async (expression, how = seconds) => {
    const began = performance.now();
    const value = await page.until(expression, how);
    if (process.env.VERBOSE && performance.now() - began > 4000) console.log(`${((performance.now() - began) / 1000).toFixed(1)} s for ${expression}`);
    return value;
  };
  const found = (role, name) => `finder.all(${js(role)}, ${js(name)})`;
  const s = {
    ...page, complaints, until, found,
    /** Calls back with everything that the browser tells. */
    listen: (hear) => browser.listeners.add(hear),
    /** Waits until something is there. */
    see: (role, name, count = 1) => until(`${found(role, name)}.length >= ${count}`),
    gone: (role, name) => until(`${found(role, name)}.length === 0`),
    count: (role, name) => page.run(`${found(role, name)}.length`),
    names: (role, name) => page.run(`${found(role, name)}.map(finder.name)`),
    /** The text of what is found, or of the whole page. */
    text: (role, name) => page.run(role ? `${found(role, name)}[0]?.innerText ?? ''` : 'document.body.innerText'),
    reads: (wanted, role, name) => until(role ? `${js(wanted)}.test(${found(role, name)}.map((e) => e.innerText).join('\\n'))` : `${js(wanted)}.test(document.body.innerText)`),
    async click(role, name, { at = 0, button = 'left', within = seconds } = {}) {
      for (const end = performance.now() + within * 1000; ;) {
        const { x, y } = await until(`await finder.spot(${js(role)}, ${js(name)}, ${at})`, within);
        for (const type of ['mouseMoved', 'mousePressed', 'mouseReleased']) await page.send('Input.dispatchMouseEvent', { type, x, y, button: type === 'mouseMoved' ? 'none' : button, clickCount: type === 'mouseMoved' ? 0 : 1 });
        // A click may lead to another page, which knows nothing of it.
        if (await page.run('window.finder?.hit() ?? true').catch(() => true)) return;
        if (performance.now() > end) throw new Error(`the ${role} ${name} moved away from every click`);
      }
    },
    /** Puts the focus into a field, and writes there instead of what was there. */
    async fill(role, name, text) {
      await until(`(() => { const e = ${found(role, name)}[0]; if (!e) return false; e.focus(); e.select?.(); return document.activeElement === e; })()`);
      if (text === '') await s.key('Delete');
      else await page.type(text);
    },
    /** Presses a key: 'Enter', 'j', 'Control+k'. */
    async key(combination) {
      const [key, ...held] = combination.split('+').reverse();
      const modifiers = held.reduce((sum, m) => sum + { Alt: 1, Control: 2, Meta: 4, Shift: 8 }[m], 0);
      const [code, text = key.length === 1 && !held.includes('Control') ? key : undefined] = keys[key] ?? [key.toUpperCase().charCodeAt(0)];
      const event = { key, code: key.length === 1 && /[a-z]/i.test(key) ? `Key${key.toUpperCase()}` : key, windowsVirtualKeyCode: code, modifiers };
      await page.send('Input.dispatchKeyEvent', { type: text ? 'keyDown' : 'rawKeyDown', text, ...event });
      await page.send('Input.dispatchKeyEvent', { type: 'keyUp', ...event });
    },
    focused: () => page.run('document.activeElement ? finder.name(document.activeElement) : ""'),
    /** Everything that axe has against the page as it is now. */
    async axe(state) {
      if (!await page.run('!!window.axe')) await page.run(`${axe}; 0`);
      const told = await page.run(`(async () => {
        await finder.still();
        const { violations } = await axe.run(document, { resultTypes: ['violations'] });
        return violations.map((v) => v.id + ' (' + v.impact + '): ' + v.help + '\\n' + v.nodes.slice(0, 4).map((n) => '    ' + n.html.slice(0, 240) + '\\n      ' + (n.any[0] ?? n.all[0] ?? n.none[0])?.message).join('\\n'));
      })()`);
      s.states.push(state);
      s.against.push(...told.map((t) => `axe, ${state}: ${t}`));
    },
    states: [],
    /** All mistakes in the page's looks and structure: a test that stopped at the first would be run as often as there are others. */
    against: [],
    /** Nothing is wider than the screen. */
    async narrow(state) {
      await page.until('document.documentElement.scrollWidth <= innerWidth', 3).catch(async () => {
        const wide = await page.run(`[...document.querySelectorAll('body *')].filter((e) => e.getBoundingClientRect().right > innerWidth + 1).slice(0, 3).map((e) => e.outerHTML.slice(0, 160))`);
        s.against.push(`wider than the screen, ${state}: ${wide.join('\n    ')}`);
      });
    },
    /** Where what the page gives one to save is put. */
    downloads: (downloadPath) => browser.send('Browser.setDownloadBehavior', { behavior: 'allow', downloadPath, ...context }),
    // The command for the demo model, and the end of its answer.
    async say(text) {
      await s.fill('textbox', 'Message', text);
      await s.key('Enter');
    },
    answers: () => page.run(`${found('article', 'Assistant')}.map((e) => e.querySelector('.md')?.innerText ?? e.innerText)`),
    busy: () => s.see('button', 'Stop'),
    idle: (how = 60) => until(`${found('textbox', 'Message')}.length > 0 && ${found('button', 'Stop')}.length === 0 && ${found('log', 'Conversation')}[0]?.ariaBusy !== 'true'`, how),
    thread: () => page.run("decodeURIComponent(/#\\/threads\\/([^/?]+)/.exec(location.hash)?.[1] ?? '')"),
    /** The server's answer, asked from the page. */
    get: (path) => page.run(`fetch(${js(path)}).then((r) => r.json())`),
    async look(how = {}) {
      await page.send('Emulation.setDeviceMetricsOverride', { width: how.width ?? 1280, height: how.height ?? 820, deviceScaleFactor: how.scale ?? 1, mobile: false });
      await page.send('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-color-scheme', value: how.dark ? 'dark' : 'light' }, { name: 'prefers-reduced-motion', value: how.motion ? 'no-preference' : 'reduce' }] });
      if (await page.run('!!window.finder')) await page.until(`innerWidth === ${how.width ?? 1280} && matchMedia('(prefers-color-scheme: dark)').matches === ${!!how.dark} && (await finder.still(), true)`);
    },
  };
  await s.look();
  return s;
}
