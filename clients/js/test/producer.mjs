// A small AG-UI producer whose streams can be resumed, for the tests of clients/conformance. Faults
// replace its functions, one at a time.
import { randomUUID } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import { createServer } from 'node:http';
import { setImmediate as turn } from 'node:timers/promises';

/** What a run does after RUN_STARTED and before its last event. */
function work() {
  const [messageId, toolCallId, parent] = [randomUUID(), randomUUID(), randomUUID()];
  const words = ['It ', 'is ', '42, ', 'as ', 'far ', 'as ', 'anybody ', 'knows.'];
  return [
    { type: 'STEP_STARTED', stepName: 'answer' },
    { type: 'REASONING_START', messageId: 'why' },
    { type: 'REASONING_MESSAGE_START', messageId: 'why', role: 'reasoning' },
    { type: 'REASONING_MESSAGE_CONTENT', messageId: 'why', delta: 'Numbers.' },
    { type: 'REASONING_MESSAGE_END', messageId: 'why' },
    { type: 'REASONING_END', messageId: 'why' },
    { type: 'TOOL_CALL_START', toolCallId, toolCallName: 'calculate', parentMessageId: parent },
    { type: 'TOOL_CALL_ARGS', toolCallId, delta: '{"term":' },
    { type: 'TOOL_CALL_ARGS', toolCallId, delta: '"6*7"}' },
    { type: 'TOOL_CALL_END', toolCallId },
    { type: 'TOOL_CALL_RESULT', messageId: randomUUID(), toolCallId, content: '42' },
    { type: 'TEXT_MESSAGE_START', messageId, role: 'assistant' },
    ...words.map((delta) => ({ type: 'TEXT_MESSAGE_CONTENT', messageId, delta })),
    { type: 'TEXT_MESSAGE_END', messageId },
    { type: 'STEP_FINISHED', stepName: 'answer' },
  ];
}

/** The messages of a thread after events, and what is open after them. */
function view(user, events) {
  const messages = [...user];
  const find = (id) => messages.find((message) => message.id === id);
  const open = [];
  for (const event of events) {
    const { type, messageId, toolCallId, delta } = event;
    if (type === 'TEXT_MESSAGE_START') messages.push({ id: messageId, role: 'assistant', content: '' });
    if (type === 'TEXT_MESSAGE_CONTENT' && find(messageId)) find(messageId).content += delta;
    if (type === 'TOOL_CALL_START') {
      const called = { name: event.toolCallName, arguments: '' };
      messages.push({ id: event.parentMessageId, role: 'assistant', toolCalls: [{ id: toolCallId, type: 'function', function: called }] });
    }
    if (type === 'TOOL_CALL_ARGS') messages.at(-1).toolCalls[0].function.arguments += delta;
    if (type === 'TOOL_CALL_RESULT') messages.push({ id: messageId, role: 'tool', toolCallId, content: event.content });
    if (type !== 'RUN_STARTED' && /_START(ED)?$/.test(type)) open.push(event);
    if (/_(END|FINISHED)$/.test(type)) open.pop();
  }
  return { messages: structuredClone(messages), open };
}

export class Producer {
  /** By their ids: {input, log: [{id, event}], ended, changes}. */
  runs = new Map();
  #server = createServer((request, response) => this.#serve(request, response).catch(() => response.destroy()));

  constructor(faults = {}) {
    Object.assign(this, faults);
  }

  async listen() {
    await once(this.#server.listen(0, '127.0.0.1'), 'listening');
    return `http://127.0.0.1:${this.#server.address().port}/agent`;
  }

  close() {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  async #serve(request, response) {
    const cursor = request.headers['last-event-id'];
    const { searchParams } = new URL(request.url, 'http://h');
    let body = '';
    for await (const piece of request.setEncoding('utf8')) body += piece;
    const input = request.method === 'GET' ? { runId: searchParams.get('runId') } : JSON.parse(body);
    return this[request.method.toLowerCase()](response, input, cursor);
  }

  async get(response, { runId }, cursor) {
    return this.continue(response, this.runs.get(runId), cursor);
  }

  async post(response, input, cursor) {
    if (input.messages.length === 0) return this.show(response, input);
    const known = this.runs.get(input.runId);
    if (known) return this.continue(response, known, cursor);
    return this.follow(response, this.start(input), 0);
  }

  /** Starts a run, which goes on whether anybody watches or not. */
  start(input) {
    const run = { input, log: [], ended: false, changes: new EventEmitter() };
    this.runs.set(input.runId, run);
    const { threadId, runId } = input;
    run.done = this.work([{ type: 'RUN_STARTED', threadId, runId }, ...work(), { type: 'RUN_FINISHED', threadId, runId }], run);
    return run;
  }

  async work(events, run) {
    for (const event of events) {
      if (run.stopped) break;
      run.log.push({ id: this.id(run.log.length + 1), event });
      run.changes.emit('change');
      await this.think();
    }
    run.ended = true;
    run.changes.emit('change');
  }

  /** Leaves a viewer in this process the time to come, however slow it all is. */
  async think() {
    for (let turns = 0; turns < 10; turns++) await turn();
  }

  id(n) {
    return `${n}-x`;
  }

  /** Continues after a cursor, or from the start without one. */
  async continue(response, run, cursor) {
    if (!run) return this.refuse(response, 404);
    const at = cursor === undefined ? 0 : run.log.findIndex(({ id }) => id === cursor) + 1;
    if (cursor !== undefined && at === 0) return this.unknown(response, run, cursor);
    if (run.ended && at === run.log.length) return this.caughtUp(response, run);
    return this.follow(response, run, at);
  }

  unknown(response) {
    this.refuse(response, 400);
  }

  caughtUp(response) {
    response.writeHead(204).end();
  }

  refuse(response, status) {
    response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify({ error: { code: 'refused' } }));
  }

  head(response) {
    response.writeHead(200, { 'Content-Type': 'text/event-stream' }).write(': here\n\n');
  }

  frame({ id, event }) {
    return `${id === undefined ? '' : `id: ${id}\n`}data: ${JSON.stringify(event)}\n\n`;
  }

  /** Streams what is after the first `at` events, to the end of the run. */
  async follow(response, run, at) {
    this.head(response);
    for (;;) {
      const more = run.log.slice(at).map((entry) => this.frame(entry));
      at += more.length;
      if (more.length > 0) response.write(more.join(''));
      if (run.ended) return response.end();
      await once(run.changes, 'change');
    }
  }

  /** Shows a thread and follows its run. */
  async show(response, { threadId, runId }) {
    const run = [...this.runs.values()].find(({ input }) => input.threadId === threadId);
    if (!run) return this.refuse(response, 404);
    const at = run.log.length;
    const { messages, open } = this.view(run, at);
    this.head(response);
    const send = (event) => response.write(this.frame({ event }));
    send({ type: 'RUN_STARTED', threadId, runId });
    send({ type: 'MESSAGES_SNAPSHOT', messages });
    open.forEach(send);
    await run.done;
    run.log.slice(at).map(({ event }) => (event.type === 'RUN_FINISHED' ? { ...event, runId } : event)).forEach(send);
    if (at === run.log.length) send({ type: 'RUN_FINISHED', threadId, runId });
    response.end();
  }

  view({ input, log }, at) {
    return view(input.messages, log.slice(0, at).map(({ event }) => event));
  }
}
