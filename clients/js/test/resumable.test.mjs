// The conformance script against producers with one fault each, which exactly one check must find,
// and against the real server on both stores.
import assert from 'node:assert/strict';
import { execFile, spawn, spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { conformance } from '../../conformance/resumable.mjs';
import { Producer } from './producer.mjs';
import { freePort, needsServer, Server } from './server.mjs';

const { prototype: good } = Producer;

/** A fault in what runs emit. */
const emitting = (change) => ({
  work(events, run) {
    return good.work.call(this, change(events), run);
  },
});
const without = (type) => emitting((events) => events.filter((event) => event.type !== type));

/** A fault in what the same runId gets again: the change returns undefined where it has none. */
const posting = (change) => ({
  post(response, input, cursor) {
    const run = this.runs.get(input.runId);
    return (run && change(this, response, run, cursor)) ?? good.post.call(this, response, input, cursor);
  },
});
const anotherRun = (producer, response, { input }) => producer.follow(response, producer.start({ ...input, runId: randomUUID() }), 0);

/** A fault in how a thread is shown, while its run is under way or when it has ended. */
const viewing = (ended, change) => ({
  view(run, at) {
    const view = good.view(run, at);
    return run.ended === ended ? { ...view, ...change(view) } : view;
  },
});

const nothing = (response) => response.writeHead(204).end();

/** The faults that each check must find. */
const faults = {
  'content-type': {
    'plain text': { head: (response) => response.writeHead(200, { 'Content-Type': 'text/plain' }).write(': here\n\n') },
  },
  frames: {
    'CR LF': { frame: (entry) => good.frame(entry).replaceAll('\n', '\r\n') },
    'an event without a member': emitting(([first, ...rest]) => [first, { type: 'CUSTOM', name: 'valueless' }, ...rest]),
    'no JSON': { frame: (entry) => good.frame(entry) + (entry.event.type === 'RUN_FINISHED' ? 'data: [DONE]\n\n' : '') },
  },
  start: {
    'another runId': emitting(([first, ...rest]) => [{ ...first, runId: 'mine' }, ...rest]),
    'something before it': emitting((events) => [{ type: 'CUSTOM', name: 'hello', value: 1 }, ...events]),
  },
  nesting: {
    'a text left open': without('TEXT_MESSAGE_END'),
    'a text never opened': without('TEXT_MESSAGE_START'),
    'a call left open': without('TOOL_CALL_END'),
    'reasoning left open': without('REASONING_END'),
    'a step left open': without('STEP_FINISHED'),
    'a chunk of nothing': emitting(([first, ...rest]) => [first, { type: 'TEXT_MESSAGE_CHUNK', delta: '' }, ...rest]),
    'a step opened twice': emitting((events) => [...events.slice(0, 2), ...events.slice(1)]),
  },
  end: {
    'no end': without('RUN_FINISHED'),
    'something after it': emitting((events) => [...events, { type: 'CUSTOM', name: 'bye', value: 1 }]),
  },
  'keep-alive': {
    'an id of its own': {
      head(response) {
        good.head(response);
        response.write('id: 99-x\n\n');
      },
    },
  },
  ids: {
    'one is missing': { frame: ({ id, event }) => good.frame({ id: event.type === 'STEP_FINISHED' ? undefined : id, event }) },
  },
  order: {
    'one id twice': { id: (n) => `${n === 5 ? 4 : n}-x` },
    'falling numbers': { id: (n) => `${1000 - n}-x` },
  },
  again: {
    'the agent runs again': posting((p, response, run, cursor) => (run.ended && cursor === undefined ? anotherRun(p, response, run) : undefined)),
  },
  'at-once': {
    'the agent runs twice': posting((p, response, run, cursor) => (!run.ended && cursor === undefined ? anotherRun(p, response, run) : undefined)),
    'only what is new': posting((p, response, run, cursor) => (!run.ended && cursor === undefined ? p.follow(response, run, run.log.length) : undefined)),
  },
  'post-resume': {
    'one event too many': posting((p, response, run, cursor) => (cursor === '7-x' ? p.follow(response, run, 6) : undefined)),
    'one event too few': posting((p, response, run, cursor) => (cursor === '15-x' ? p.follow(response, run, 16) : undefined)),
    'the cursor is ignored': posting((p, response, run, cursor) => (cursor?.length < 5 ? p.follow(response, run, 0) : undefined)),
  },
  'get-resume': {
    'the cursor is ignored': {
      get(response, { runId }, cursor) {
        return cursor?.length < 5 ? this.follow(response, this.runs.get(runId), 0) : good.get.call(this, response, { runId }, cursor);
      },
    },
    'not from its start': {
      get(response, { runId }, cursor) {
        return this.follow(response, this.runs.get(runId), cursor === undefined ? 12 : 0);
      },
    },
  },
  'caught-up': {
    'the end once more': {
      caughtUp(response, run) {
        return this.follow(response, run, run.log.length - 1);
      },
    },
  },
  'unknown-cursor': {
    'nothing, without a word': {
      unknown: (response, run, cursor) => (cursor.startsWith('no-such') ? nothing(response) : good.refuse(response, 400)),
    },
    'an empty new start': {
      unknown(response, { input: { threadId, runId } }, cursor) {
        if (!cursor.startsWith('no-such')) return this.refuse(response, 400);
        this.head(response);
        for (const type of ['RUN_STARTED', 'RUN_FINISHED']) response.write(this.frame({ event: { type, threadId, runId } }));
        return response.end();
      },
    },
  },
  'cursor-beyond': {
    'nothing, without a word': {
      unknown: (response, run, cursor) => (cursor.startsWith('no-such') ? good.refuse(response, 400) : nothing(response)),
    },
  },
  cut: {
    'the run ends with its viewer': {
      follow(response, run, at) {
        response.on('close', () => (run.stopped = true));
        return good.follow.call(this, response, run, at);
      },
    },
  },
  hydrate: {
    'without the question': viewing(true, ({ messages }) => ({ messages: messages.slice(1) })),
    'the answer twice': viewing(true, ({ messages }) => ({ messages: [...messages, { ...messages.at(-1), id: 'again' }] })),
  },
  reload: {
    'without what was said before': viewing(false, () => ({ messages: [] })),
    'what is open is not opened again': viewing(false, () => ({ open: [] })),
  },
};

/** Checks a producer that listens, and stops it. */
async function checked(producer, options) {
  try {
    return await conformance(await producer.listen(), { timeout: 20, ...options });
  } finally {
    producer.close();
  }
}

const judged = ({ checks }, result) => checks.filter((one) => one.result === result).map(({ check }) => check);

test('a producer without a fault passes every check', async () => {
  const report = await checked(new Producer());
  assert.deepEqual(report.checks.filter(({ result }) => result !== 'pass'), []);
  assert.deepEqual(report.checks.map(({ check }) => check), Object.keys(faults));
});

test('a fault fails exactly the check that is about it', { concurrency: true }, async (t) => {
  const tries = Object.entries(faults).flatMap(([check, list]) => Object.entries(list).map(([name, fault]) => [check, name, fault]));
  await Promise.all(
    tries.map(([check, name, fault]) =>
      t.test(`${check}: ${name}`, async () => {
        const cuts = check.endsWith('-resume') ? undefined : 1; // what the fault is not about need not be tried everywhere
        const report = await checked(new Producer(fault), { cuts });
        assert.deepEqual(judged(report, 'fail'), [check], JSON.stringify(report.checks, null, 1));
      }),
    ),
  );
});

test('a producer that starts over after a cursor that it does not know passes', async () => {
  const report = await checked(
    new Producer({
      unknown(response, run) {
        return this.follow(response, run, 0);
      },
    }),
  );
  assert.deepEqual(judged(report, 'fail'), []);
  assert.match(report.checks.find(({ check }) => check === 'unknown-cursor').saw, /starts over/);
});

test('comments, other fields and texts in chunks are no fault', async () => {
  const report = await checked(
    new Producer({
      ...emitting((events) => {
        const [first, ...chunks] = events.filter(({ type }) => /^TEXT_MESSAGE_(START|CONTENT)$/.test(type));
        const text = chunks.map((chunk, n) => ({ ...chunk, type: 'TEXT_MESSAGE_CHUNK', messageId: n === 0 ? first.messageId : undefined }));
        return [...events.filter(({ type }) => !type.startsWith('TEXT_MESSAGE_')).slice(0, -1), ...text, events.at(-1)];
      }),
      frame: (entry) => `: keep-alive\n\nretry: 250\nevent: message\n${good.frame(entry).replace('data: {', 'data: {\n: inside\ndata:')}`,
      show: (response) => good.refuse(response, 400),
    }),
    { cuts: 6 },
  );
  assert.deepEqual(judged(report, 'fail'), [], JSON.stringify(report.checks, null, 1));
  assert.deepEqual(judged(report, 'not offered'), ['hydrate', 'reload']);
});

test('a producer of streams that cannot be resumed is legal, and offers nothing else', async () => {
  const plain = new Producer({
    frame: ({ event }) => good.frame({ event }),
    get: (response) => good.refuse(response, 405),
    post(response, input) {
      if (input.messages.length === 0) return this.refuse(response, 400);
      return this.follow(response, this.start(input), 0);
    },
  });
  const report = await checked(plain);
  assert.deepEqual(judged(report, 'pass'), ['content-type', 'frames', 'start', 'nesting', 'end', 'keep-alive']);
  assert.equal(report.failed, 0);
});

const script = fileURLToPath(new URL('../../conformance/resumable.mjs', import.meta.url));
const command = (...args) => new Promise((done) => execFile(process.execPath, [script, ...args], (error, stdout, stderr) => done({ code: error?.code ?? 0, stdout, stderr })));

test('the command says what it saw, and its exit code whether a check failed', async () => {
  const [fine, bad] = [new Producer(), new Producer(faults.end['no end'])];
  try {
    const [urls, nowhere] = [await Promise.all([fine.listen(), bad.listen()]), `http://127.0.0.1:${await freePort()}/`];
    const [passed, failed, away, empty] = await Promise.all([
      command(urls[0], '--header', 'Authorization: Bearer x', '--message', 'hello', '--get', '{url}?runId={runId}', '--json'),
      command(urls[1]),
      command(nowhere),
      command(),
    ]);
    assert.equal(passed.code, 0, passed.stderr);
    const { failed: wrong, checks } = JSON.parse(passed.stdout);
    assert.deepEqual([wrong, checks.length], [0, Object.keys(faults).length]);
    assert.equal(failed.code, 1, failed.stderr);
    assert.match(failed.stdout, /^fail +end +no terminal event came\.$/m);
    assert.deepEqual([away.code, empty.code], [2, 2]);
    assert.match(away.stderr, /did not stream a run: the connection broke: ECONNREFUSED/);
    assert.match(empty.stderr, /^usage: /);
  } finally {
    fine.close();
    bad.close();
  }
});

/** The real server on a store passes everything. */
async function serverPasses(store) {
  // A busy machine may compare a run after five seconds, when its log would be archived.
  const server = await new Server(await freePort(), ['--demo-delay=2ms', '--archive-after=1h'], store).start();
  try {
    const report = await conformance(server.url, {
      message: ['plan 1 steps'],
      get: `${server.base}/threads/{threadId}/runs/{runId}/events`,
      timeout: 60,
    });
    assert.deepEqual(report.checks.filter(({ result }) => result !== 'pass'), []);
  } finally {
    await server.stop();
  }
}

test('Holdfast passes every check on the store in a folder', needsServer, () => serverPasses());

const redis = spawnSync('redis-server', ['--version']).status === 0;
if (!redis && process.env.HOLDFAST_REQUIRE_ALL === '1') throw new Error('redis-server is missing');
const skip = needsServer.skip || (redis ? false : 'redis-server is missing');

test('Holdfast passes every check on Redis', { skip }, async () => {
  const port = await freePort();
  const store = spawn('redis-server', ['--port', String(port), '--bind', '127.0.0.1', '--save', ''], { stdio: 'ignore' });
  try {
    await serverPasses(`redis://127.0.0.1:${port}`);
  } finally {
    store.kill();
  }
});
