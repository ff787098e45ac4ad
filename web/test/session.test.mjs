import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ApiError } from '../src/api.js';
import { Session } from '../src/session.js';

const stream = (...events) => new Response(events.map((e) => `data: ${JSON.stringify(e)}\n\n`).join(''));
const began = (runId) => ({ type: 'RUN_STARTED', threadId: 't', runId });
const end = (runId, outcome) => ({ type: 'RUN_FINISHED', threadId: 't', runId, outcome });

/** A tab: its storage outlives the sessions in it. */
function tab() {
  const kept = new Map();
  return { getItem: (k) => kept.get(k) ?? null, setItem: (k, v) => void kept.set(k, v), removeItem: (k) => void kept.delete(k), kept };
}

/** No answer until the page goes away. */
const silence = (body, path, signal) => new Promise((_, fail) => { signal.addEventListener('abort', () => fail(signal.reason)); });

function open(storage, answer) {
  const asked = [];
  const refused = [];
  const session = new Session('t', {
    storage, changed() {}, connection() {}, refused: (err, body) => refused.push([err.code, body]),
    request: async (method, path, { body, signal } = {}) => {
      asked.push({ method, path, body });
      return answer(body, path, signal);
    },
  });
  return { session, asked, refused };
}

test('a message is sent alone, as a run of its own, as people chat', async () => {
  const { session, asked } = open(tab(), (body) => stream(began(body.runId), end(body.runId)));
  await session.say('hi');
  const { body } = asked[0];
  assert.deepEqual([body.protocolVersion, body.threadId, body.messages.length, body.messages[0].content], ['1.0', 't', 1, 'hi']);
  assert.deepEqual(body.forwardedProps, { holdfast: { chat: true, onInterrupted: 'reject' } });
  assert.deepEqual([session.busy, session.view.status, session.view.items[0].text], [false, 'done', 'hi']);
});

test('a message that was on its way when the page was closed is sent again, as the same run', async () => {
  const storage = tab();
  const never = open(storage, silence);
  const gone = never.session.say('hi');
  never.session.close();
  await gone;
  const after = open(storage, (body) => stream(began(body?.runId ?? 'r'), end(body?.runId ?? 'r')));
  await after.session.open();
  assert.deepEqual(after.asked[0].body, never.asked[0].body);
  assert.equal(storage.kept.size, 0);
  await after.session.open();
  assert.equal(after.asked[1].path, 'threads/t/stream', 'once it has arrived it is not sent again');
});

test('a refused message is handed back and not shown as said', async () => {
  const storage = tab();
  const { session, refused } = open(storage, () => { throw new ApiError(409, { code: 'interrupted', message: 'm' }); });
  await session.say('hi');
  assert.deepEqual([refused[0][0], refused[0][1].messages[0].content], ['interrupted', 'hi']);
  assert.deepEqual([session.view.items, storage.kept.size, session.busy], [[], 0, false]);
});

test('a second click sends nothing', async () => {
  const { session, asked } = open(tab(), (body) => stream(began(body.runId), end(body.runId)));
  await Promise.all([session.answer([{ interruptId: 'i', status: 'resolved', payload: 1 }]), session.answer([]), session.resume()]);
  assert.equal(asked.length, 1);
  assert.deepEqual(asked[0].body.resume, [{ interruptId: 'i', status: 'resolved', payload: 1 }]);
});

test('stop names the requested run, even before the server has confirmed it', async () => {
  const { session, asked } = open(tab(), (body, path, signal) => (path.endsWith('cancel') ? new Response('{}') : silence(body, path, signal)));
  const done = session.say('hi');
  await session.cancel();
  session.close();
  await done;
  assert.equal(asked[1].path, `threads/t/runs/${asked[0].body.runId}/cancel`);
});

test('a page that has left the thread gets no more of its events', async () => {
  const { session, refused } = open(tab(), (body) => stream(began(body.runId)));
  const done = session.say('hi');
  session.close();
  await done;
  assert.deepEqual([refused, session.view.status], [[], 'idle']);
});
