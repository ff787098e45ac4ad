// Drives a Chromium over two pipes with the DevTools protocol: no port, no packages.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** So many seconds are enough for each answer of a browser, and for its end. */
const patience = 60;

/** Starts a browser. close ends it and removes what it wrote. A command that it leaves unanswered fails after so many seconds, and says what that was. */
export function launch(program, seconds = patience) {
  const profile = mkdtempSync(join(tmpdir(), 'holdfast-chromium-'));
  const child = spawn(program, [
    '--headless=new', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--no-first-run', '--disable-extensions',
    // Tabs that are not in front work as those that are.
    '--disable-background-timer-throttling', '--disable-backgrounding-occluded-windows', '--disable-renderer-backgrounding',
    '--remote-debugging-pipe', `--user-data-dir=${profile}`, 'about:blank',
  ], { stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'] });
  const [, , , out, back] = child.stdio;
  const waiting = new Map();
  const listeners = new Set();
  let next = 0;
  let rest = '';
  back.setEncoding('utf8');
  back.on('data', (text) => {
    const messages = (rest + text).split('\0');
    rest = messages.pop();
    for (const m of messages.map((s) => JSON.parse(s))) {
      if (m.id === undefined) {
        for (const l of [...listeners]) l(m);
        continue;
      }
      const asked = waiting.get(m.id);
      if (m.error) asked?.reject(new Error(m.error.message));
      else asked?.resolve(m.result);
    }
  });
  const gone = new Promise((resolve) => { child.on('exit', resolve).on('error', resolve); }); // or it never was there
  out.on('error', () => {}); // the writer is told
  // Nothing is left of it when this process ends before it is closed.
  const clear = () => {
    child.kill('SIGKILL');
    rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
  };
  process.on('exit', clear);
  gone.then(() => { for (const w of waiting.values()) w.reject(new Error('the browser went away')); });
  const send = (method, params = {}, sessionId = undefined, { within = seconds, what = method } = {}) => new Promise((resolve, reject) => {
    const id = ++next;
    // Made here, where it is known who asked.
    const late = new Error(`no answer from the browser within ${within} s: ${what}`);
    const timer = setTimeout(() => waiting.get(id)?.reject(late), within * 1000);
    const once = (settle) => (value) => {
      clearTimeout(timer);
      waiting.delete(id);
      settle(value);
    };
    waiting.set(id, { resolve: once(resolve), reject: once(reject) });
    out.write(JSON.stringify({ id, method, params, sessionId }) + '\0', (err) => err && waiting.get(id)?.reject(err));
  });
  return {
    send, listeners,
    async close() {
      const timer = setTimeout(() => child.kill('SIGKILL'), seconds * 1000);
      await send('Browser.close').catch(() => {});
      await gone;
      clearTimeout(timer);
      process.off('exit', clear);
      clear();
    },
  };
}

/** Opens a tab. complaints collects errors of the console and of the page, and violations of its policy. */
export async function tab(browser, complaints, context = {}) {
  const { targetId } = await browser.send('Target.createTarget', { url: 'about:blank', ...context });
  const { sessionId } = await browser.send('Target.attachToTarget', { targetId, flatten: true });
  const send = (method, params, how) => browser.send(method, params, sessionId, how);
  browser.listeners.add((m) => {
    if (m.sessionId !== sessionId) return;
    const p = m.params;
    if (m.method === 'Runtime.exceptionThrown') complaints.push(p.exceptionDetails.exception?.description ?? p.exceptionDetails.text);
    if (m.method === 'Runtime.consoleAPICalled' && ['error', 'warning', 'assert'].includes(p.type)) complaints.push(JSON.stringify(p.args.map((a) => a.value ?? a.description)));
    if (m.method === 'Log.entryAdded' && ['error', 'warning'].includes(p.entry.level)) complaints.push(`${p.entry.source}: ${p.entry.text} ${p.entry.url ?? ''}`);
  });
  for (const domain of ['Page', 'Runtime', 'Log']) await send(domain + '.enable');
  const page = {
    send,
    session: sessionId,
    close: () => browser.send('Target.closeTarget', { targetId }),
    async run(expression, how = { what: expression.slice(0, 400) }) {
      const r = await send('Runtime.evaluate', { expression, awaitPromise: true, returnByValue: true, userGesture: true }, how);
      if (r.exceptionDetails) throw new Error(r.exceptionDetails.exception?.description ?? r.exceptionDetails.text);
      return r.result.value;
    },
    /** Waits until an expression, which may await, is true in the page. */
    async until(expression, seconds = 20) {
      const js = `(async () => {
        const end = performance.now() + ${seconds * 1000};
        for (;;) {
          let v; let why = ''; try { v = ${expression}; } catch (err) { v = false; why = '\\n' + err; }
          if (v) return v instanceof Node ? true : v;
          if (performance.now() > end) throw new Error(${JSON.stringify(`never true: ${expression}`)} + why + '\\n' + document.body.innerText.slice(-1500));
          await new Promise((next) => setTimeout(next, 30));
        }
      })()`;
      // Its promise may never resolve, and a page that computes looks at no clock.
      return page.run(js, { within: seconds + 10, what: `until ${expression}` });
    },
    async goto(url) {
      await send('Page.navigate', { url });
      // The page takes an operator's token out of its address.
      await page.until(`location.href === ${JSON.stringify(url.replace(/#token=.*/, '#/'))} && document.readyState === 'complete'`);
    },
    async reload() {
      await page.run('window.isOld = true');
      await send('Page.reload');
      await page.until("!window.isOld && document.readyState === 'complete'");
    },
    type: (text) => send('Input.insertText', { text }),
    async press(key, code = key) {
      const keyCode = { Enter: 13, Escape: 27 }[key] ?? key.toUpperCase().charCodeAt(0);
      const text = key === 'Enter' ? '\r' : key.length === 1 ? key : undefined;
      await send('Input.dispatchKeyEvent', { type: 'keyDown', key, code, text, windowsVirtualKeyCode: keyCode });
      await send('Input.dispatchKeyEvent', { type: 'keyUp', key, code, windowsVirtualKeyCode: keyCode });
    },
    async look({ width = 1280, height = 820, dark = false }) {
      await send('Emulation.setDeviceMetricsOverride', { width, height, deviceScaleFactor: 1, mobile: false });
      await send('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-color-scheme', value: dark ? 'dark' : 'light' }] });
    },
    async shoot(file) {
      const { data } = await send('Page.captureScreenshot', { format: 'png' });
      writeFileSync(file, Buffer.from(data, 'base64'));
    },
  };
  return page;
}
