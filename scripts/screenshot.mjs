// The conversation in the README's picture: a tool that has run, then one that waits for
// approval.
//
//   node scripts/screenshot.mjs path/to/holdfast path/to/page.png
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { launch, tab } from '../web/test/cdp.mjs';

const [binary, picture] = process.argv.slice(2);
if (!picture) throw new Error('usage: node scripts/screenshot.mjs path/to/holdfast path/to/page.png');
const chromium = [process.env.CHROMIUM, 'chromium', 'chromium-browser', 'google-chrome'].filter(Boolean)
  .find((p) => spawnSync(p, ['--version']).status === 0);
if (!chromium) throw new Error('there is no Chromium here: apt-get install chromium, or set CHROMIUM');

/** The most bytes that the picture may have. */
const most = 200_000;

const agents = `agents:
  - name: demo
    model: demo
    tools: [lookup, current_time, calculate, update_plan]
    middleware:
      - toolPermission: {default: allow, rules: [{tool: lookup, then: ask}]}
`;

const dir = mkdtempSync(join(tmpdir(), 'holdfast-picture-'));
writeFileSync(join(dir, 'holdfast.yaml'), agents);
const server = spawn(resolve(binary), ['--addr', 'localhost:0', '--store', 'memory:', '--demo-delay', '1ms', '--config', join(dir, 'holdfast.yaml')],
  { stdio: ['ignore', 'pipe', 'ignore'], cwd: dir });
const base = await new Promise((done, fail) => {
  server.stdout.on('data', (text) => {
    const at = /listening\s+(http:\S+)/.exec(String(text));
    if (at) done(at[1] + '/');
  });
  server.on('exit', (code) => fail(new Error(`the server ended with ${code}`)));
});

const browser = launch(chromium);
try {
  const page = await tab(browser, []);
  await page.look({ width: 1120, height: 890 });
  await page.goto(base);
  await page.until("document.querySelectorAll('#examples button').length === 3");
  const say = async (text) => {
    await page.run("document.getElementById('text').focus()");
    await page.type(text);
    await page.press('Enter');
  };
  const idle = "document.getElementById('stop').hidden";

  await say('What is (19.90 * 3 + 4.50) * 1.19?');
  await page.until(`document.querySelectorAll('.call[data-state=done]').length === 1 && ${idle}`);
  await say('Look up pending write');
  await page.until("document.querySelectorAll('#ask form').length === 1");
  await page.run('document.activeElement.blur()');
  await page.run("new Promise((done) => { document.getElementById('log').scrollTop = 1e6; requestAnimationFrame(() => requestAnimationFrame(done)); })");
  await page.shoot(picture);
} finally {
  await browser.close();
  server.removeAllListeners('exit');
  const gone = new Promise((done) => { server.on('exit', done); });
  server.kill('SIGKILL');
  await gone;
  rmSync(dir, { recursive: true, force: true });
}
const { size } = statSync(picture);
if (size > most) throw new Error(`the picture has ${size} bytes; ${most} are enough`);
console.log(`${picture}: ${size} bytes`);
