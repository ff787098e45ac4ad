// The shared parts of the tests against the real server: the server's process, the official client in
// the version that AGUI_CLIENT names, and a console that must stay silent.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { register } from 'node:module';

export * from './server.mjs';

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
