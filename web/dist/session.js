
import { follow, ApiError } from './api.js';
import { addLocal, empty, isEnd, reduce, removeLocal } from './reduce.js';
import { uuid } from './dom.js';
export class Session {
constructor(thread, hooks) {
this.thread = thread;
this.hooks = hooks;
this.view = empty();
this.busy = false;
this.turn = 0;
this.closed = new AbortController();
this.asked = '';
this.wake = () => {};
}
close() {
this.closed.abort();
this.wake();
}
get #slot() {
return 'holdfast.pending.' + this.thread;
}
open() {
const pending = this.hooks.storage.getItem(this.#slot);
if (!pending) return this.#stream();
return this.#post(JSON.parse(pending));
}
say(content, choices = {}) {
return this.#post(this.#input({ messages: [{ id: uuid(), role: 'user', content }] }, choices));
}
resume() {
return this.#post(this.#input({ messages: [] }));
}
answer(answers) {
return this.#post(this.#input({ messages: [], resume: answers }));
}
async cancel() {
const run = encodeURIComponent(this.asked || this.view.runId);
await this.hooks.request('POST', `threads/${encodeURIComponent(this.thread)}/runs/${run}/cancel`);
}
#input(more, choices = {}) {
return {
protocolVersion: '1.0', threadId: this.thread, runId: uuid(), ...more,
forwardedProps: { holdfast: { chat: true, onInterrupted: 'reject', ...choices } },
};
}
async #post(body) {
if (this.busy) return; // a second click
this.hooks.storage.setItem(this.#slot, JSON.stringify(body));
this.asked = body.runId;
for (const m of body.messages) this.view = addLocal(this.view, m);
await this.#stream(body);
}
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
#take(event, id) {
if (this.closed.signal.aborted) return;
this.hooks.storage.removeItem(this.#slot);
if (event.type === 'RUN_STARTED') this.asked = '';
this.view = reduce(this.view, event);
this.hooks.changed(event, id);
if (isEnd(event)) this.busy = false;
}
#refuse(err, body) {
this.hooks.storage.removeItem(this.#slot);
for (const m of body?.messages ?? []) this.view = removeLocal(this.view, m.id);
this.hooks.refused(err instanceof ApiError ? err : new ApiError(0, { code: 'page_error', message: String(err) }), body);
}
}
