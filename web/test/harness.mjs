// The surroundings of a tab in browser tests: Chromium, and the real server in a folder of its own.
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

/** So many seconds are enough for a program to start, or to end. */
const patience = 60;

/** The Chromium of this machine, or undefined. */
export function chromium() {
  return [process.env.CHROMIUM, 'chromium', 'chromium-browser', 'google-chrome'].filter(Boolean).find((p) => {
    const { status, error } = spawnSync(p, ['--version'], { timeout: patience * 1000, killSignal: 'SIGKILL' });
    if (error?.code === 'ETIMEDOUT') throw new Error(`${p} --version has not ended within ${patience} s`);
    return status === 0;
  });
}

/** Fails after so many seconds, unless what is waited for is there before. */
export function within(seconds, what, wait) {
  const late = new Error(`not within ${seconds} s: ${what}`);
  let timer;
  return Promise.race([wait, new Promise((_, fail) => { timer = setTimeout(() => fail(late), seconds * 1000); })]).finally(() => clearTimeout(timer));
}

export const freePort = () => new Promise((done) => {
  const s = createServer().listen(0, 'localhost', () => {
    const { port } = s.address();
    s.close(() => done(port));
  });
});

/** Waits until something outside of the page is so. */
export async function eventually(what, look, seconds = patience) {
  for (const end = performance.now() + seconds * 1000; !look();) {
    if (performance.now() > end) throw new Error(`not within ${seconds} s: ${what}`);
    await new Promise((next) => { setTimeout(next, 30); });
  }
}

/** A server that can be killed and started again, at the same address and with the same store. */
export async function serve(binary, { env = {}, args = [], store = 'file', seconds = patience } = {}) {
  const program = resolve(binary);
  const dir = mkdtempSync(join(tmpdir(), 'holdfast-page-'));
  const port = await freePort();
  let child;
  let said;
  const server = {
    dir, base: `http://localhost:${port}/`, program,
    /** The address of the page for the operator of a server without keys, as the server prints it, with another beginning below a proxy. */
    operator: (base = server.base) => `${base}${/#token=[\w-]+/.exec(said)[0]}`,
    /** Starts it; what is given here is for this process only. */
    start: (now = {}) => within(seconds, 'the server listens', new Promise((done, fail) => {
      const where = store === 'file' ? `file:${join(dir, 'data')}` : store;
      child = spawn(program, ['--addr', `localhost:${port}`, '--store', where, ...args, ...(now.args ?? [])], {
        stdio: ['ignore', 'pipe', process.env.VERBOSE ? 'inherit' : 'ignore'], cwd: dir, env: { ...process.env, HOLDFAST_DEMO_KILL: 'false', ...env, ...now.env },
      });
      said = '';
      child.stdout.setEncoding('utf8').on('data', (text) => {
        said = (said + text).slice(-4000);
        if (said.includes('listening')) done();
      });
      child.on('error', fail);
      child.on('exit', (code, signal) => fail(new Error(`the server ended with ${signal ?? code}`)));
    })),
    /** kill -9 */
    kill: () => ended(child, 'SIGKILL'),
    async close(most = patience) {
      // The one that supervises ends what it has started.
      await ended(child, 'SIGTERM', most).finally(clear);
      process.off('exit', clear);
    },
  };
  // Nothing is left of it when this process ends before it is closed.
  const clear = () => {
    child?.kill('SIGKILL');
    rmSync(dir, { recursive: true, force: true, maxRetries: 5 });
  };
  process.on('exit', clear);
  return server;
}

function ended(child, signal, seconds = patience) {
  if (!child || child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
  const gone = new Promise((done) => { child.removeAllListeners('exit').on('exit', done); });
  child.kill(signal);
  return within(seconds, `the server ends after ${signal}`, gone);
}
