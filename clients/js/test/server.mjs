// The real server's process, for tests that need no client.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

export const binary = process.env.HOLDFAST_BINARY;
/** For test(name, needsServer, …): without the binary, which `make clients` builds, there is nothing to test. */
export const needsServer = { skip: binary ? false : 'HOLDFAST_BINARY is not set; make clients sets it' };
if (!binary && process.env.HOLDFAST_REQUIRE_ALL === '1') throw new Error('HOLDFAST_BINARY is not set');

export async function freePort() {
  const server = createServer();
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  const { port } = server.address();
  await new Promise((done) => server.close(done));
  return port;
}

/** One server with a store of its own unless it is given one, which can be killed and started again. */
export class Server {
  #dir = mkdtempSync(join(tmpdir(), 'holdfast-clients-'));
  #process;

  constructor(port, args = ['--demo-delay=5ms'], store) {
    this.port = port;
    this.args = args;
    this.store = store ?? `file:${join(this.#dir, 'data')}`;
    this.base = `http://127.0.0.1:${port}`;
    this.url = `${this.base}/runs`;
  }

  async start() {
    const args = ['--addr', `127.0.0.1:${this.port}`, '--store', this.store, ...this.args];
    this.#process = spawn(resolve(binary), args, { stdio: ['ignore', 'pipe', 'ignore'], cwd: this.#dir, env: { ...process.env, HOLDFAST_DEMO_KILL: 'false' } });
    await new Promise((done, fail) => {
      this.#process.stdout.on('data', (text) => String(text).includes('listening') && done());
      this.#process.on('exit', (code) => fail(new Error(`the server ended with ${code}`)));
    });
    return this;
  }

  /** kill -9, or another signal that ends the server; returns its exit code. */
  async kill(signal = 'SIGKILL') {
    if (this.#process.exitCode !== null) return this.#process.exitCode;
    const gone = new Promise((done) => this.#process.removeAllListeners('exit').on('exit', done));
    this.#process.kill(signal);
    return gone;
  }

  async stop() {
    await this.kill();
    rmSync(this.#dir, { recursive: true, force: true });
  }

  async get(path) {
    const response = await fetch(this.base + path);
    assert.equal(response.status, 200, path);
    return response.json();
  }

  async history(thread) {
    return (await this.get(`/threads/${thread}/messages`)).messages;
  }
}
