// Servers that are made up, so that every answer and every cut is exactly where a test wants it.
// Time is simulated.
import { resumingFetch } from '../dist/fetch.js';

export const post = (body = {}) => ({ method: 'POST', headers: { 'Content-Type': 'application/json', Authorization: 'Bearer k' }, body: JSON.stringify({ threadId: 't/1', runId: 'r1', protocolVersion: '1.0', ...body }) });
export const started = 'id: 1-a\ndata: {"type":"RUN_STARTED","threadId":"t/1","runId":"r1"}\n\n';
export const text = (n) => `id: ${n}-a\ndata: {"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"${n}"}\n\n`;
export const finished = 'id: 9-a\ndata: {"type":"RUN_FINISHED","threadId":"t/1","runId":"r1"}\n\n';

/** A stream; `how` is what happens at its end: end, break or hang. */
export function sse(content, how = 'end', headers = { 'Holdfast-Run': 'r1' }) {
  return (init) => new Response(new ReadableStream({
    start(controller) {
      controller.enqueue(new TextEncoder().encode(content));
      if (how === 'end') controller.close();
      if (how === 'break') setTimeout(() => controller.error(new TypeError('terminated')), 1);
      init.signal?.addEventListener('abort', () => controller.error(new DOMException('', 'AbortError')));
    },
  }), { headers: { 'Content-Type': 'text/event-stream', ...headers } });
}

export const json = (status, body = {}, headers = {}) => () => new Response(JSON.stringify(body), { status, headers: { 'Content-Type': 'application/json', ...headers } });
export const down = () => Promise.reject(new TypeError('fetch failed'));

/** A fetch that gives these answers in order, and the requests that it got. */
export function answers(...list) {
  const requests = [];
  const fetch = async (url, init) => {
    requests.push({ url, method: init.method ?? 'GET', cursor: new Headers(init.headers).get('Last-Event-ID'), init });
    const next = list.length > 1 ? list.shift() : list[0];
    return next(init);
  };
  return { fetch, requests };
}

/** Lets simulated time pass until the promise is settled, and returns how long that took. */
export async function pass(t, promise) {
  let settled = false;
  const done = promise.finally(() => (settled = true));
  done.catch(() => {});
  let ms = 0;
  for (; !settled; ms += 10) {
    for (let i = 0; i < 8 && !settled; i++) await new Promise((next) => setImmediate(next));
    if (!settled) t.mock.timers.tick(10);
  }
  return [await done, ms];
}

export const timers = (t) => t.mock.timers.enable({ apis: ['setTimeout', 'Date'] });
export const lines = async (response) => (await response.text()).split('\n').filter((line) => line.startsWith('data: ')).map((line) => JSON.parse(line.slice(6)));

/** Posts through resumingFetch and returns the events, the requests and how long it took. */
export async function run(t, list, options = {}, init = post()) {
  timers(t);
  const { fetch, requests } = answers(...list);
  const resuming = resumingFetch({ fetch, ...options });
  const [events, ms] = await pass(t, resuming('http://h/x/agents/demo/runs', init).then(lines));
  return { events, requests, ms };
}

export const asked = (requests) => requests.map(({ method, url, cursor }) => [method, url.replace('http://h/x', ''), cursor]);
