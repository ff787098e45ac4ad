// @ts-check
// One open thread: its view, and the request or stream that feeds it.

import { follow, ApiError } from './api.js';
import { addLocal, empty, isEnd, reduce, removeLocal } from './reduce.js';
import { uuid } from './dom.js';

/**
 * @typedef {object} Hooks
 * @property {import('./api.js').Request} request
 * @property {(event?: any, id?: string) => void} changed with the event, if one caused the change
 * @property {(state: 'live' | 'reconnecting') => void} connection
 * @property {(error: any, body: any) => void} refused the server did not accept a request; body is what was posted, if anything
 * @property {Storage} storage keeps a request that may not have arrived
 */

export class Session {
  /** @param {string} thread @param {Hooks} hooks */
  constructor(thread, hooks) {
    this.thread = thread;
    this.hooks = hooks;
    this.view = empty();
    this.busy = false;
    /** Counts streams, to recognize answers to requests from before the current one. */
    this.turn = 0;
    this.closed = new AbortController();
    /** The run that was requested and has not been confirmed yet. */
    this.asked = '';
    /** Ends a wait between two attempts. */
    this.wake = () => {};
  }

  close() {
    this.closed.abort();
    this.wake();
  }

  get #slot() {
    return 'holdfast.pending.' + this.thread;
  }

  /** Shows the thread as it is. A message that was on its way when the page was closed is sent again; the run's id keeps it from running twice. */
  open() {
    const pending = this.hooks.storage.getItem(this.#slot);
    if (!pending) return this.#stream();
    return this.#post(JSON.parse(pending));
  }

  /** @param {string} content @param {any} [choices] what to do if the thread is not idle; see forwardedProps.holdfast */
  say(content, choices = {}) {
    return this.#post(this.#input({ messages: [{ id: uuid(), role: 'user', content }] }, choices));
  }

  /** Continues what was left unfinished. */
  resume() {
    return this.#post(this.#input({ messages: [] }));
  }

  /** @param {any[]} answers */
  answer(answers) {
    return this.#post(this.#input({ messages: [], resume: answers }));
  }

  /** Asks the server to end the current run. */
  async cancel() {
    const run = encodeURIComponent(this.asked || this.view.runId);
    await this.hooks.request('POST', `threads/${encodeURIComponent(this.thread)}/runs/${run}/cancel`);
  }

  /** @param {any} more @param {any} [choices] */
  #input(more, choices = {}) {
    return {
      protocolVersion: '1.0', threadId: this.thread, runId: uuid(), ...more,
      // As people chat: what was stopped or failed is in nobody's way, and an edited message
      // begins a branch. An open question is declined only by somebody who says so.
      forwardedProps: { holdfast: { chat: true, onInterrupted: 'reject', ...choices } },
    };
  }

  /** @param {any} body */
  async #post(body) {
    if (this.busy) return; // a second click
    this.hooks.storage.setItem(this.#slot, JSON.stringify(body));
    this.asked = body.runId;
    for (const m of body.messages) this.view = addLocal(this.view, m);
    await this.#stream(body);
  }

  /** @param {any} [body] */
  async #stream(body) {
    this.busy = true;
    this.turn++;
    this.hooks.changed();
    try {
      await follow({
        request: this.hooks.request, thread: this.thread, body, random: Math.random, signal: this.closed.signal,
        onState: this.hooks.connection,
        sleep: (ms) => new Promise((done) => {
          const timer = setTimeout(done, ms);
          this.wake = () => {
            clearTimeout(timer);
            done();
          };
        }),
        onEvent: (event, id) => this.#take(event, id),
      });
    } catch (err) {
      if (this.closed.signal.aborted) return;
      this.#refuse(err, body);
    }
    this.busy = false;
    this.asked = '';
    this.hooks.changed();
  }

  /** @param {any} event @param {string} id */
  #take(event, id) {
    if (this.closed.signal.aborted) return;
    this.hooks.storage.removeItem(this.#slot);
    if (event.type === 'RUN_STARTED') this.asked = '';
    this.view = reduce(this.view, event);
    this.hooks.changed(event, id);
    if (isEnd(event)) this.busy = false;
  }

  /** @param {any} err @param {any} body */
  #refuse(err, body) {
    this.hooks.storage.removeItem(this.#slot);
    for (const m of body?.messages ?? []) this.view = removeLocal(this.view, m.id);
    this.hooks.refused(err instanceof ApiError ? err : new ApiError(0, { code: 'page_error', message: String(err) }), body);
  }
}
