// The Vercel AI SDK, unchanged, with a real server that is killed in between. With HOLDFAST_AISDK=all
// (make ai-sdk) on both stores, in all versions, killed at PLACES places; otherwise the least of each.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import * as v7 from 'ai';
import * as v5 from 'ai-v5';
import * as v6 from 'ai-v6';
import { needsServer, resumingFetch, silent } from './client.mjs';
import { agents, onStores } from './stores.mjs';

const config = `${agents}  - name: asking
    tools: [calculate]
    middleware:
      - toolPermission: { rules: [{ tool: calculate, then: ask }], default: allow }
`;

const all = process.env.HOLDFAST_AISDK === 'all';
const kills = Number(process.env.PLACES ?? 1);
const { servers, scenario } = onStores(config, all, silent);

/** What a page keeps of a chat. */
class State {
  status = 'ready';
  error = undefined;
  constructor(messages = []) {
    this.messages = messages;
  }
  pushMessage = (m) => void (this.messages = [...this.messages, m]);
  popMessage = () => void (this.messages = this.messages.slice(0, -1));
  replaceMessage = (i, m) => void (this.messages = this.messages.with(i, structuredClone(m)));
  snapshot = (thing) => structuredClone(thing);
}

/** A chat as a page makes one: nothing in it is the server's. */
function open(server, { sdk = v7, agent = 'demo', id = randomUUID(), messages, transport, ...more } = {}) {
  class Chat extends sdk.AbstractChat {}
  const version = sdk === v5 ? '?sdk=5' : sdk === v6 ? '?sdk=6' : '';
  return new Chat({
    id,
    transport: new sdk.DefaultChatTransport({ api: `${server.base}/ai-sdk/${agent}${version}`, ...transport }),
    state: new State(messages),
    ...more,
  });
}

const chatURL = (server, chat, rest = '', agent = 'demo') => `${server.base}/ai-sdk/${agent}/${chat.id}${rest}`;

const history = async (server, chat, agent) => (await (await fetch(chatURL(server, chat, '', agent))).json()).messages;

/** What a person sees of messages. */
const shown = (messages) => JSON.parse(JSON.stringify(messages)).map(({ id, role, parts }) => ({
  id,
  role,
  parts: parts.filter(({ type }) => !type.startsWith('data-')).map(({ type, text, state, toolCallId, input, output, errorText, url }) => ({ type, text, state: role === 'user' ? undefined : state, toolCallId, input, output, errorText, url })),
}));

/** Fails unless the chat shows what the server has. */
async function same(server, chat, agent) {
  assert.equal(chat.error, undefined);
  assert.equal(chat.status, 'ready');
  const messages = await history(server, chat, agent);
  assert.deepEqual(shown(chat.messages), shown(messages));
  await v7.validateUIMessages({ messages });
}

const textOf = (message) => message.parts.filter(({ type }) => type === 'text').map(({ text }) => text).join('');
const toolOf = (message) => message.parts.find(({ type }) => type.startsWith('tool-'));

/** Waits until something that changes is there. */
async function until(condition) {
  for (let n = 0; !condition(); n++) {
    assert.ok(n < 2000, 'it has not come');
    await new Promise((done) => setTimeout(done, 5));
  }
}

scenario('text, reasoning, state and tools', async (server) => {
  const data = [];
  const chat = open(server, { onData: (part) => data.push(part) });
  for (const text of ['think about durability', 'bad args', ...(all ? ['hello there', 'plan 3 steps', 'paint', 'parallel 3', 'flaky'] : ['plan 1 step'])]) await chat.sendMessage({ text });
  const states = new Set(chat.messages.flatMap(({ parts }) => parts).map(({ type, state }) => `${type.replace(/-.*/, '')} ${state}`));
  for (const state of ['text done', 'reasoning done', 'tool output-available', 'tool output-error', ...(all ? ['file undefined'] : [])]) assert.ok(states.has(state), state);
  assert.ok(data.some(({ type }) => type === 'data-state'));
  assert.ok(chat.messages.at(-1).metadata.holdfast.runId);
  await same(server, chat);
  await chat.resumeStream(); // nothing runs
  await same(server, chat);
});

scenario('a file, another answer, an edited message, and only the last message', async (server) => {
  const chat = open(server);
  await chat.sendMessage({ text: 'hello there', files: [{ type: 'file', mediaType: 'image/png', filename: 'a.png', url: 'data:image/png;base64,iVBORw0KGgo=' }] });
  await chat.sendMessage({ text: 'calculate 6 * 7' });
  await same(server, chat);
  const [first] = chat.messages;
  await chat.regenerate();
  assert.equal(chat.messages.length, 4);
  await same(server, chat);
  await chat.sendMessage({ text: 'hello again', messageId: first.id });
  assert.equal(chat.messages.length, 2);
  assert.match(textOf(chat.messages[1]), /again/);
  const now = await history(server, chat);
  assert.deepEqual(shown(now).map(({ parts }) => parts), shown(chat.messages).map(({ parts }) => parts));
  assert.equal(chat.messages[1].id, now[1].id);
  const short = open(server, {
    id: chat.id,
    messages: now,
    transport: { prepareSendMessagesRequest: ({ id, messages, trigger, messageId }) => ({ body: { id, trigger, messageId, message: trigger === 'submit-message' ? messages.at(-1) : undefined } }) },
  });
  await short.sendMessage({ text: 'calculate 2 + 3' });
  assert.match(textOf(short.messages.at(-1)), /5/);
  await short.regenerate();
  await same(server, short);
}, false);

const pick = { name: 'pick', description: 'Lets the person pick.', parameters: { type: 'object' } };

scenario('tools of the page', async (server) => {
  const calls = [];
  const chat = open(server, {
    transport: { body: { tools: [pick] } },
    sendAutomaticallyWhen: v7.lastAssistantMessageIsCompleteWithToolCalls,
    onToolCall: ({ toolCall }) => void calls.push(toolCall),
  });
  await chat.sendMessage({ text: 'use pick {"of": ["red", "blue"]}' });
  assert.deepEqual(calls.map(({ toolName, input }) => [toolName, input]), [['pick', { of: ['red', 'blue'] }]]);
  await same(server, chat);
  await chat.addToolOutput({ tool: 'pick', toolCallId: calls[0].toolCallId, output: { picked: 'red' } });
  await until(() => chat.status === 'ready' && textOf(chat.messages[1]).includes('Done'));
  assert.deepEqual([chat.messages.length, toolOf(chat.messages[1]).output], [2, { picked: 'red' }]);
  await same(server, chat);
});

for (const approved of [true, false]) {
  scenario(`an approval: ${approved ? 'yes' : 'no'}`, async (server) => {
    const more = { agent: 'careful', sendAutomaticallyWhen: v7.lastAssistantMessageIsCompleteWithApprovalResponses };
    const asked = open(server, more);
    await asked.sendMessage({ text: 'charge 1' });
    assert.equal(toolOf(asked.messages[1]).state, 'approval-requested');
    await same(server, asked, 'careful');
    const chat = open(server, { ...more, id: asked.id, messages: await history(server, asked, 'careful') }); // after a reload
    await chat.addToolApprovalResponse({ id: toolOf(chat.messages[1]).approval.id, approved, reason: approved ? undefined : 'too much' });
    await until(() => chat.status === 'ready' && !toolOf(chat.messages[1]).state.startsWith('approval'));
    assert.equal(toolOf(chat.messages[1]).state, approved ? 'output-available' : 'output-denied');
    await same(server, chat, 'careful');
  }, approved);
}

scenario('a question, Stop, and an error', async (server) => {
  const chat = open(server);
  await chat.sendMessage({ text: 'ask me What is new?' });
  const question = chat.messages[1].parts.find(({ type }) => type === 'data-question');
  assert.equal(question.data.toolCallId, toolOf(chat.messages[1]).toolCallId);
  await chat.sendMessage(undefined, { body: { resume: [{ interruptId: question.id, status: 'resolved', payload: { answer: 'nothing' } }] } });
  assert.match(textOf(chat.messages[1]), /nothing/);
  await same(server, chat);
  const saying = chat.sendMessage({ text: 'slow 400' });
  await until(() => chat.messages.length === 4 && textOf(chat.lastMessage).length > 20);
  await chat.stop();
  await saying;
  const running = await (await fetch(chatURL(server, chat))).json();
  assert.equal(running.status, 'running'); // closing a connection cancels nothing
  const stopped = await fetch(chatURL(server, chat, '/stop'), { method: 'POST', headers: { 'Content-Type': 'application/json' } });
  assert.deepEqual(await stopped.json(), { stopped: true });
  await chat.sendMessage({ text: 'hello there' });
  await chat.sendMessage({ text: 'fail' });
  assert.equal(chat.status, 'error');
  assert.match(chat.error.message, /^[A-Z][^{}]*\.$/);
}, false);

scenario('an answer that is completed between the two requests of a page', async (server) => {
  const chat = open(server);
  const saying = chat.sendMessage({ text: 'plan 2 steps' });
  await until(() => chat.messages.length === 2 && toolOf(chat.messages[1])?.state === 'output-available');
  const page = open(server, { id: chat.id, messages: await history(server, chat) });
  await saying;
  assert.notDeepEqual(shown(page.messages), shown(await history(server, chat)));
  await page.resumeStream();
  await same(server, page);
});

/** Says something, and kills the server after so many chunks. `said` settles when the client has had enough. */
async function killed(server, chat, say, chunks) {
  let seen = 0;
  let here;
  const there = new Promise((done) => { here = done; });
  chat.transport.processResponseStream = function (stream) {
    return Object.getPrototypeOf(this).processResponseStream.call(this, stream).pipeThrough(new TransformStream({
      transform(chunk, controller) {
        controller.enqueue(chunk);
        if (++seen === chunks) here();
      },
    }));
  };
  const saying = say();
  await Promise.race([there, saying]);
  await server.kill();
  return { said: saying };
}

/** Where the server is killed: after how many chunks of an answer of about 200. */
const places = Array.from({ length: kills }, (_, n) => Math.round((200 * (n + 0.5)) / kills));

for (const [version, sdk] of Object.entries(all ? { 7: v7, 6: v6, 5: v5 } : { 7: v7 })) {
  scenario(`kill -9 in the middle of an answer, with a reload: ai ${version}`, async (server) => {
    for (const place of places) {
      const chat = open(server, { sdk });
      await (await killed(server, chat, () => chat.sendMessage({ text: 'plan 4 steps' }), place)).said;
      assert.equal(chat.status, 'error');
      await server.start();
      const page = open(server, { sdk, id: chat.id, messages: await history(server, chat) });
      await page.resumeStream();
      assert.match(textOf(page.messages[1]), /4/);
      if (sdk === v7) {
        await same(server, page);
        continue;
      }
      // The older ones cannot take back what the model had begun to say: it stays until the next reload.
      const [, { parts }] = shown(page.messages);
      const [, kept] = shown(await history(server, page));
      assert.deepEqual(kept.parts.filter((part) => parts.some((p) => isDeepStrictEqual(p, part))), kept.parts);
    }
  });
}

scenario('kill -9 after an approval', async (server) => {
  for (const place of kills === 1 ? [4] : [1, 2, 3, 4, 6, 8]) {
    const chat = open(server, { agent: 'asking' });
    await chat.sendMessage({ text: 'calculate 6 * 7' });
    await chat.addToolApprovalResponse({ id: toolOf(chat.messages[1]).approval.id, approved: true });
    await (await killed(server, chat, () => chat.sendMessage(), place)).said;
    await server.start();
    const page = open(server, { agent: 'asking', id: chat.id, messages: await history(server, chat, 'asking') });
    await page.resumeStream();
    assert.match(textOf(page.messages[1]), /42/);
    await same(server, page, 'asking');
  }
}, false);

/** The errors of Chromium for a connection that breaks, which the client knows; those of Node it does not. */
async function likeChromium(url, init) {
  const response = await fetch(url, init);
  if (response.body === null) return response;
  const reader = response.body.getReader();
  return new Response(new ReadableStream({
    async pull(controller) {
      const { done, value } = await reader.read().catch(() => { throw new TypeError('network error'); });
      if (done) controller.close();
      else controller.enqueue(value);
    },
    cancel: (reason) => reader.cancel(reason),
  }), { status: response.status, headers: response.headers });
}

scenario('kill -9 in the middle of an answer, and useChat resumes when its tab is shown again', async (server) => {
  for (const place of places) {
    const chat = open(server, { transport: { fetch: likeChromium } });
    await (await killed(server, chat, () => chat.sendMessage({ text: 'plan 4 steps' }), place)).said;
    assert.equal(chat.status, 'error');
    await server.start();
    await chat['~resumeStreamIfDisconnected'](); // of useChat with resume: true, on visibilitychange
    await same(server, chat);
  }
}, false);

scenario('kill -9 in the middle of an answer, with our fetch', async (server) => {
  for (const place of places) {
    const connections = [];
    const chat = open(server, { transport: { fetch: resumingFetch({ maxDelay: 50, onConnection: (state) => connections.push(state) }) } });
    const { said } = await killed(server, chat, () => chat.sendMessage({ text: 'plan 4 steps' }), place);
    await server.start();
    await said;
    assert.deepEqual(connections, ['reconnecting', 'live']);
    await same(server, chat);
  }
});

test('5 and 6 read what they are sent', needsServer, async () => {
  const server = servers.file;
  for (const [sdk, version] of [[v5, 5], [v6, 6], [v7, 7]]) {
    for (const [agent, text] of [['careful', 'charge 1'], ...(all ? ['think about durability', 'bad args', 'plan 3 steps', 'flaky'] : []).map((text) => ['demo', text])]) {
      const response = await fetch(`${server.base}/ai-sdk/${agent}?sdk=${version}`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify({ id: randomUUID(), messages: [{ id: 'm', role: 'user', parts: [{ type: 'text', text }] }] }),
      });
      assert.equal(response.headers.get('X-Vercel-AI-UI-Message-Stream'), 'v1');
      const types = [];
      // The transport checks each chunk by the schema of its version.
      for await (const { type } of new sdk.DefaultChatTransport().processResponseStream(response.body)) types.push(type);
      assert.deepEqual([types[0], types.at(-1)], ['start', 'finish'], `${version}: ${text}`);
    }
  }
});
