// The shared parts of the tests against the real server: the server's process, the official client in
// the version that AGUI_CLIENT names, and a console that must stay silent.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { register } from 'node:module';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

export const version = process.env.AGUI_CLIENT ?? '1.0.0';
export const old = version !== '1.0.0';
if (old) register('./oldclient.mjs', import.meta.url);
export const { HoldfastAgent, resumingFetch } = await import('holdfast-agent');
export const { AssistantUIAgent } = await import('holdfast-agent/assistant-ui');
export const { HttpAgent } = await import('@ag-ui/client');

/** The client's complaints. Tests look at it and empty it. */
export const warnings = [];
for (const level of ['warn', 'error']) {
  console[level] = (...args) => warnings.push(`${level}: ${args.map(String).join(' ')}`);
}
process.on('unhandledRejection', (error) => warnings.push(`unhandled rejection: ${error?.stack ?? error}`));

/** Fails if the client had anything to complain about; pending rejections are reported first. */
export async function silent() {
  await new Promise((done) => setImmediate(done));
  assert.deepEqual(warnings.splice(0), []);
}

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

export const user = (content) => ({ id: randomUUID(), role: 'user', content });

export const plain = (messages) => JSON.parse(JSON.stringify(messages));

/** Fails unless the agent shows exactly what the server has, each message once. */
export async function same(agent, server) {
  const shown = plain(agent.messages);
  assert.deepEqual(shown, await server.history(agent.threadId));
  assert.equal(new Set(shown.map((m) => m.id)).size, shown.length);
}

/** Says something and returns how the run ended. `seen` is called with each event. */
export async function say(agent, content, { seen = () => {}, ...parameters } = {}) {
  if (content !== undefined) agent.addMessage(user(content));
  return watch((subscriber) => agent.runAgent(parameters, subscriber), seen);
}

/** Starts a run or an attach, and returns how it ended. */
export async function watch(start, seen = () => {}) {
  const result = { types: [] };
  await start({
    onEvent({ event }) {
      result.types.push(event.type);
      seen(event);
    },
    onRunFinishedEvent({ event }) {
      result.finished = event;
    },
    onRunErrorEvent({ event }) {
      result.error = event;
    },
  });
  return result;
}

/** Returns a function for `seen` that calls `then` when the nth event of a type arrives. */
export function onNth(type, n, then) {
  return (event) => {
    if (event.type === type && --n === 0) then();
  };
}
