// The waiting of browser tests has a limit, and a test that waited in vain is told what it was.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { launch, tab } from './cdp.mjs';
import { eventually, serve } from './harness.mjs';

let dir;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'holdfast-deadlines-'));
});
afterEach(() => rmSync(dir, { recursive: true }));

/** A program that is none of ours. */
function script(name, text) {
  const path = join(dir, name);
  writeFileSync(path, `#!/bin/sh\n${text}\n`, { mode: 0o755 });
  return path;
}

const silent = '[ "$1" = --version ] || exec sleep 600';
const deaf = "trap '' TERM; echo listening; while :; do sleep 0.1; done";

test('a browser that answers nothing', async () => {
  const browser = launch(script('silent', silent), 0.2);
  await expect(tab(browser, [])).rejects.toThrow('no answer from the browser within 0.2 s: Target.createTarget');
  await browser.close();
});

test('a browser that is not there', async () => {
  const browser = launch(join(dir, 'nobody'));
  await expect(tab(browser, [])).rejects.toThrow();
  await browser.close();
});

test('a server that does not listen', async () => {
  const server = await serve(script('silent', silent), { seconds: 0.2 });
  await expect(server.start()).rejects.toThrow('not within 0.2 s: the server listens');
  await server.close();
  expect(existsSync(server.dir)).toBe(false);
});

test('a server that does not end', async () => {
  const server = await serve(script('deaf', deaf));
  await server.start();
  await expect(server.close(0.2)).rejects.toThrow('not within 0.2 s: the server ends after SIGTERM');
  expect(existsSync(server.dir)).toBe(false);
});

test('something that never is so', async () => {
  await expect(eventually('a wonder', () => false, 0.1)).rejects.toThrow('not within 0.1 s: a wonder');
});

test('all suites together', () => {
  const { stdout, status } = spawnSync(process.execPath, [fileURLToPath(new URL('./browser.mjs', import.meta.url)), script('deaf', deaf), '--limit', '1', 'kill'], {
    encoding: 'utf8', timeout: 30_000, killSignal: 'SIGKILL', env: { ...process.env, CHROMIUM: script('silent', silent), TMPDIR: dir },
  });
  expect(stdout).toMatch(/FAILED: not done within 1 s; under way:\n {2}kill: its server and its tab \(for 1 s\)\n/);
  expect(status).toBe(1);
  expect(readdirSync(dir).filter((name) => name.startsWith('holdfast-')), 'nothing is left').toEqual([]);
});
