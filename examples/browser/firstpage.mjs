// Runs the five commands of docs/frontends.md as they stand there, in a new folder, and asks
// the page for an answer in a real browser. Only the address of the repository and the ports
// are others.
//
//   node examples/browser/firstpage.mjs
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { fileURLToPath } from 'node:url';
import { launch, tab } from '../../web/test/cdp.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));
const chromium = [process.env.CHROMIUM, 'chromium', 'chromium-browser', 'google-chrome'].filter(Boolean).find((p) => spawnSync(p, ['--version']).status === 0);
if (!chromium) {
  console.log('skipped: no Chromium here (apt-get install chromium, or set CHROMIUM)');
  process.exit(process.env.HOLDFAST_REQUIRE_ALL === '1' ? 1 : 0);
}

const freePort = () => new Promise((done) => {
  const s = createServer().listen(0, 'localhost', () => {
    const { port } = s.address();
    s.close(() => done(port));
  });
});

const page = readFileSync(`${root}/docs/frontends.md`, 'utf8');
const text = /## A page of your own in five commands\n.*?^```sh\n(.*?)^```$/ms.exec(page)?.[1] ?? '';
const commands = text.replace(/(?<=<<'END'\n).*?^END$/gms, '').split('\n').filter(Boolean);
assert.equal(commands.length, 5, commands.join('\n'));

const [server, files] = [await freePort(), await freePort()];
const script = text.replace(/https:\S+/, `file://${root}`).replaceAll('8080', server).replaceAll('3000', files).replace('--chat', `--chat --addr localhost:${server}`);
const folder = mkdtempSync(`${tmpdir()}/holdfast-first-page-`);
const began = Date.now();
const shell = spawn('bash', ['-e', '-c', script], { cwd: folder, detached: true, stdio: ['pipe', 'inherit', 'inherit'], env: { ...process.env, HOLDFAST_DEMO_KILL: 'false' } });
const ended = new Promise((done) => { shell.on('exit', done); });
const browser = launch(chromium);
try {
  const answers = async (url) => {
    for (;;) {
      if (await Promise.race([fetch(url).then((res) => res.ok, () => false), ended.then((code) => { throw new Error(`the commands ended with ${code}`); })])) return;
      await new Promise((done) => { setTimeout(done, 100); });
    }
  };
  await answers(`http://localhost:${files}/`);
  await answers(`http://localhost:${server}/readyz`);
  const complaints = [];
  const view = await tab(browser, complaints);
  await view.goto(`http://localhost:${files}/`);
  await view.run("document.querySelector('input').focus()");
  await view.type('plan 3 steps');
  await view.press('Enter');
  await view.until("document.querySelector('pre').innerText.includes('All 3 steps are done.')", 60);
  await view.reload();
  await view.until("document.querySelector('pre').innerText.includes('All 3 steps are done.')");
  // The first visit asks for a thread that does not exist yet.
  assert.deepEqual(complaints.filter((line) => !/404 .*my-thread\/stream|favicon/.test(line)), []);
  console.log(`five commands, and an answer after ${((Date.now() - began) / 1000).toFixed(1)} seconds`);
} finally {
  await browser.close();
  process.kill(-shell.pid, 'SIGKILL');
  await ended;
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
}
