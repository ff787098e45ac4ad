// @ts-check
// Requests, and the stream of a run, which survives whatever happens to the connection:
// it reconnects and asks for exactly what is missing.

import { frames } from './sse.js';
import { isEnd } from './reduce.js';

/** An error from the server: {"error": {code, message, hint, details}}. */
export class ApiError extends Error {
  /** @param {number} status @param {any} error @param {number} [retryAfter] seconds */
  constructor(status, error, retryAfter = 0) {
    super(error?.message ?? `The server answered ${status}.`);
    this.status = status;
    this.code = error?.code ?? `http_${status}`;
    this.hint = error?.hint ?? '';
    this.details = error?.details ?? {};
    this.retryAfter = retryAfter;
  }
}

/** @typedef {(method: string, path: string, o?: {body?: any, headers?: any, signal?: AbortSignal}) => Promise<Response>} Request */

/**
 * @param {string} base the server's URL, with a slash at its end
 * @param {() => string} key a bearer key, or ''
 * @param {() => Promise<void>} unauthorized gets another key, with which the request is sent again
 * @returns {Request}
 */
export const requester = (base, key, unauthorized) => async (method, path, { body, headers = {}, signal } = {}) => {
  for (;;) {
    const sent = key();
    const response = await fetch(base + path, {
      method, signal, cache: 'no-store', credentials: 'same-origin',
      body: body === undefined ? undefined : JSON.stringify(body),
      headers: { ...headers, ...(method === 'GET' ? {} : { 'Content-Type': 'application/json' }), ...(sent ? { Authorization: 'Bearer ' + sent } : {}) },
    });
    if (response.ok) return response;
    if (response.status === 401) {
      if (sent === key()) await unauthorized();
      continue;
    }
    const error = await response.json().then((b) => b.error, () => undefined);
    throw new ApiError(response.status, error, Number(response.headers.get('Retry-After')) || 0);
  }
};

/** Whether the same request may succeed later. @param {any} err @param {boolean} accepted the run exists */
function passes(err, accepted) {
  if (!(err instanceof ApiError)) return true; // the network
  return [429, 502, 503, 504].includes(err.status) || (accepted && err.status >= 500);
}

const part = encodeURIComponent;

/**
 * @typedef {object} Following
 * @property {Request} request
 * @property {string} thread
 * @property {any} [body] a RunAgentInput to post; without it, attach to the thread
 * @property {(event: any, id: string) => void} onEvent
 * @property {(state: 'live' | 'reconnecting') => void} onState
 * @property {(ms: number) => Promise<void>} sleep may return early if it is worth trying again
 * @property {() => number} random from 0 to 1
 * @property {AbortSignal} signal
 * @property {number} [silence] milliseconds without a byte after which a connection is dropped; the server sends something every 15 s
 */

/**
 * Streams a run to its end. It repairs a cut for as long as that takes: a POST that was
 * never answered is sent again (the server knows its runId), a run that has started is
 * followed from the last id, and if there is no id, or the server no longer knows it, the
 * page attaches to the thread again.
 * @param {Following} o
 */
export async function follow(o) {
  const at = { run: '', cursor: '', posted: !o.body, retry: 250, tries: 0, ended: false, broken: false };
  for (;;) {
    let wait = 0;
    try {
      await attempt(o, at);
      if (at.ended) return;
    } catch (err) {
      if (o.signal.aborted || at.broken) throw err;
      if (at.ended) return;
      if (!passes(err, at.posted)) {
        if (!(err instanceof ApiError) || err.status !== 404 || !at.cursor) throw err;
        at.cursor = ''; // the run is gone; the thread may still exist
      }
      wait = err instanceof ApiError ? err.retryAfter * 1000 : 0;
    }
    o.onState('reconnecting');
    // Jitter keeps the pages of a restarted server from all coming back at once.
    const backoff = Math.min(10_000, at.retry * 2 ** at.tries++);
    await o.sleep(Math.max(wait, backoff * (0.5 + o.random() / 2)));
    o.signal.throwIfAborted();
  }
}

/** One connection. @param {Following} o @param {any} at */
async function attempt(o, at) {
  const connection = new AbortController();
  const stop = () => connection.abort();
  o.signal.addEventListener('abort', stop, { once: true });
  /** @type {any} */
  let timer;
  const alive = () => {
    clearTimeout(timer);
    timer = setTimeout(stop, o.silence ?? 40_000);
  };
  try {
    alive();
    const response = await open(o, at, connection.signal);
    if (response.status === 204 || !response.body) {
      at.cursor = ''; // nothing is missing, but the end was not seen: ask for the thread's status
      return;
    }
    for await (const frame of frames(response.body, alive)) {
      if (frame.retry !== undefined) at.retry = frame.retry;
      if (frame.data) take(o, at, frame);
    }
  } finally {
    clearTimeout(timer);
    o.signal.removeEventListener('abort', stop);
  }
}

/** @param {Following} o @param {any} at @param {AbortSignal} signal */
function open(o, at, signal) {
  const headers = { 'Holdfast-Resume': '1', Accept: 'text/event-stream' };
  if (!at.posted) return o.request('POST', 'runs', { body: o.body, headers, signal });
  if (!at.cursor) return o.request('GET', `threads/${part(o.thread)}/stream`, { headers, signal });
  return o.request('GET', `threads/${part(o.thread)}/runs/${part(at.run)}/events`, { headers: { ...headers, 'Last-Event-ID': at.cursor }, signal });
}

/** @param {Following} o @param {any} at @param {import('./sse.js').Frame} frame */
function take(o, at, frame) {
  const event = JSON.parse(frame.data);
  at.posted = true;
  at.tries = 0;
  if (event.type === 'RUN_STARTED') {
    at.run = event.metadata?.holdfast?.runId ?? event.runId;
    at.cursor = ''; // unless it has an id of its own, this is a new start
  }
  if (frame.id) at.cursor = frame.id;
  if (isEnd(event)) at.ended = true;
  try {
    o.onState('live');
    o.onEvent(event, frame.id);
  } catch (err) {
    at.broken = true; // a bug in the page: asking again would only repeat it
    throw err;
  }
}
