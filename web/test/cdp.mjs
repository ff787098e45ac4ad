// Drives a Chromium over two pipes with the DevTools protocol: no port, no packages.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Starts a browser. close ends it and removes what it wrote. */
export function launch(program) {
  const profile = mkdtempSync(join(tmpdir(), 'holdfast-chromium-'));
  const child = spawn(program, [
    '--headless=new', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--no-first-run', '--disable-extensions',
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
      const { resolve, reject } = waiting.get(m.id);
      waiting.delete(m.id);
      if (m.error) reject(new Error(m.error.message));
      else resolve(m.result);
    }
  });
  const gone = new Promise((resolve) => { child.on('exit', resolve); });
  child.on('error', () => {}); // the first send fails and says so
  gone.then(() => { for (const w of waiting.values()) w.reject(new Error('the browser went away')); });
  const send = (method, params = {}, sessionId = undefined) => new Promise((resolve, reject) => {
    waiting.set(++next, { resolve, reject });
    out.write(JSON.stringify({ id: next, method, params, sessionId }) + '\0', (err) => err && reject(err));
  });
  return {
    send, listeners,
    async close() {
      await send('Browser.close').catch(() => {});
      await gone;
      rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

/** Opens a tab. complaints collects errors of the console and of the page, and violations of its policy. */
export async function tab(browser, complaints) {
  const { targetId } = await browser.send('Target.createTarget', { url: 'about:blank' });
  const { sessionId } = await browser.send('Target.attachToTarget', { targetId, flatten: true });
  const send = (method, params) => browser.send(method, params, sessionId);
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
    async run(expression) {
      const r = await send('Runtime.evaluate', { expression, awaitPromise: true, returnByValue: true, userGesture: true });
      if (r.exceptionDetails) throw new Error(r.exceptionDetails.exception?.description ?? r.exceptionDetails.text);
      return r.result.value;
    },
    /** Waits until an expression is true in the page; the page's own changes wake it. */
    async until(expression, seconds = 20) {
      const js = `new Promise((done, fail) => {
        const look = () => { let v; try { v = ${expression}; } catch { v = false; } if (v) { clearInterval(tick); clearTimeout(end); done(v); } };
        const tick = setInterval(look, 30);
        const end = setTimeout(() => { clearInterval(tick); fail(new Error(${JSON.stringify(`never true: ${expression}`)} + '\\n' + document.body.innerText.slice(-1500))); }, ${seconds * 1000});
        look();
      })`;
      return page.run(js);
    },
    async goto(url) {
      await send('Page.navigate', { url });
      await page.until(`location.href === ${JSON.stringify(url)} && document.readyState === 'complete'`);
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
