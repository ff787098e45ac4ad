#!/usr/bin/env node
// Runs any AG-UI producer through what a resumable transport needs: legal streams, a cursor on
// each event, streams that continue after a cursor, a thread that can be shown again, and a run
// that starts once. It is one file without packages, for Node 20 or newer:
//
//   node resumable.mjs http://localhost:8080/runs --header 'Authorization: Bearer …'
//
// docs/resumable.md explains each check. The exit code is 0 if none failed, 1 if one did, and 2 if
// the producer could not be checked.
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { realpathSync } from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';

const usage = `usage: node resumable.mjs URL [options]

  URL                 where runs are posted as RunAgentInput
  --header 'K: V'     a header for every request; may be repeated
  --message TEXT      what to say to the agent; may be repeated, and each one is a run
  --input JSON        members to add to every RunAgentInput, like '{"forwardedProps": {…}}'
  --get URL           where a run is read with GET; {url}, {threadId} and {runId} are filled in
  --cuts N            the most cuts to try in one run (200)
  --timeout SECONDS   how long one request may take (120)
  --json              one JSON object instead of lines
`;

/** The members without which an event of a type cannot be read; the others are the type's own. */
const required = {
  RUN_STARTED: ['threadId', 'runId'],
  RUN_FINISHED: ['threadId', 'runId'],
  RUN_ERROR: ['message'],
  STEP_STARTED: ['stepName'],
  STEP_FINISHED: ['stepName'],
  TEXT_MESSAGE_START: ['messageId'],
  TEXT_MESSAGE_CONTENT: ['messageId', 'delta'],
  TEXT_MESSAGE_END: ['messageId'],
  TOOL_CALL_START: ['toolCallId', 'toolCallName'],
  TOOL_CALL_ARGS: ['toolCallId', 'delta'],
  TOOL_CALL_END: ['toolCallId'],
  TOOL_CALL_RESULT: ['messageId', 'toolCallId', 'content'],
  REASONING_START: ['messageId'],
  REASONING_END: ['messageId'],
  REASONING_MESSAGE_START: ['messageId', 'role'],
  REASONING_MESSAGE_CONTENT: ['messageId', 'delta'],
  REASONING_MESSAGE_END: ['messageId'],
  STATE_SNAPSHOT: ['snapshot'],
  STATE_DELTA: ['delta'],
  MESSAGES_SNAPSHOT: ['messages'],
  ACTIVITY_SNAPSHOT: ['messageId', 'activityType', 'content'],
  ACTIVITY_DELTA: ['messageId', 'activityType', 'patch'],
  SUBAGENT_STARTED: ['subagentRunId', 'name'],
  SUBAGENT_FINISHED: ['subagentRunId'],
  SUBAGENT_ERROR: ['subagentRunId', 'message'],
  RAW: ['event'],
  CUSTOM: ['name', 'value'],
};

const item = (kind, member, start, piece, ...ends) => ({ kind, member, start, piece, ends });

/** What is opened, continued and closed: its kind, the member with its id, and the types that do so. */
const items = [
  item('text', 'messageId', 'TEXT_MESSAGE_START', 'TEXT_MESSAGE_CONTENT', 'TEXT_MESSAGE_END'),
  item('tool call', 'toolCallId', 'TOOL_CALL_START', 'TOOL_CALL_ARGS', 'TOOL_CALL_END'),
  item('reasoning', 'messageId', 'REASONING_START', undefined, 'REASONING_END'),
  item('reasoning message', 'messageId', 'REASONING_MESSAGE_START', 'REASONING_MESSAGE_CONTENT', 'REASONING_MESSAGE_END'),
  item('step', 'stepName', 'STEP_STARTED', undefined, 'STEP_FINISHED'),
  item('subagent', 'subagentRunId', 'SUBAGENT_STARTED', undefined, 'SUBAGENT_FINISHED', 'SUBAGENT_ERROR'),
];

/** The member that says which item a piece belongs to. */
const pieces = {
  TEXT_MESSAGE_CONTENT: 'messageId',
  TEXT_MESSAGE_CHUNK: 'messageId',
  TOOL_CALL_ARGS: 'toolCallId',
  TOOL_CALL_CHUNK: 'toolCallId',
  REASONING_MESSAGE_CONTENT: 'messageId',
  REASONING_MESSAGE_CHUNK: 'messageId',
};

/** What does not end an item that is sent in chunks. */
const besides = /^(RAW|ACTIVITY_.*|REASONING_ENCRYPTED_VALUE|SUBAGENT_STARTED)$/;

const terminal = (event) => event?.type === 'RUN_FINISHED' || event?.type === 'RUN_ERROR';
const count = (n, what) => `${n} ${what}${n === 1 ? '' : 's'}`;
const pass = (saw) => ({ result: 'pass', saw });
const fail = (saw) => ({ result: 'fail', saw });
const none = (saw) => ({ result: 'not offered', saw });

// --- what comes over the wire -------------------------------------------------------------------

/** Reads one block of lines between two empty ones. */
function frameOf(block) {
  const frame = { comments: 0 };
  for (const line of block.split('\n')) {
    if (line.startsWith(':')) frame.comments++;
    const [, field, value] = /^([^:]+)(?:: ?(.*))?$/s.exec(line) ?? [];
    if (field === 'data') frame.data = frame.data === undefined ? (value ?? '') : `${frame.data}\n${value ?? ''}`;
    if (field === 'id') frame.id = value ?? '';
  }
  if (frame.data === undefined) return frame;
  try {
    frame.event = JSON.parse(frame.data);
  } catch {
    // The check `frames` says so.
  }
  return frame;
}

/** A request to the producer, read to its end or until `cut` returns true for an event. */
export class Answer {
  status = 0;
  type = '';
  /** All frames, those without an event too. */
  frames = [];
  /** The frames that have an event. */
  events = [];
  carriageReturns = false;
  /** Why the stream did not end by itself: empty, or a sentence's end. */
  broken = '';
  silence = 0;
  /** What was said instead of a stream. */
  text = '';

  async read(target, method, url, { body, cursor, cut = () => false } = {}) {
    const headers = { Accept: 'text/event-stream', ...target.headers };
    if (body) headers['Content-Type'] = 'application/json';
    if (cursor !== undefined) headers['Last-Event-ID'] = cursor;
    const request = (url.startsWith('https:') ? https : http).request(url, { method, headers });
    request.on('error', () => {}); // those that matter are thrown below
    let late = false;
    const timer = setTimeout(() => {
      late = true;
      request.destroy();
    }, target.timeout);
    try {
      const [response] = await once(request.end(body && JSON.stringify(body)), 'response');
      this.status = response.statusCode;
      this.type = response.headers['content-type'] ?? '';
      response.setEncoding('utf8');
      if (this.status === 200) await this.#stream(response, cut);
      else for await (const piece of response) this.text += piece;
    } catch (error) {
      this.broken = late ? `was still open after ${target.timeout / 1000} s` : `broke: ${error.code ?? error.message}`;
    } finally {
      clearTimeout(timer);
    }
    return this;
  }

  async #stream(response, cut) {
    let rest = '';
    let before = Date.now();
    for await (const piece of response) {
      this.silence = Math.max(this.silence, Date.now() - before);
      before = Date.now();
      this.carriageReturns ||= piece.includes('\r');
      const blocks = (rest + piece).replaceAll('\r\n', '\n').split('\n\n');
      rest = blocks.pop();
      for (const frame of blocks.map(frameOf)) {
        this.frames.push(frame);
        if (frame.event === undefined) continue;
        this.events.push(frame);
        if (cut(frame, this)) return;
      }
    }
  }

  get refused() {
    return this.status >= 400;
  }

  /** The status, and the first words of what was said instead of a stream. */
  get said() {
    let words = this.text;
    try {
      const { error, message, detail } = JSON.parse(this.text);
      words = error?.message ?? message ?? detail ?? error ?? words;
    } catch {
      // A producer need not answer with JSON.
    }
    return words ? `${this.status} ${JSON.stringify(words).slice(0, 100)}` : String(this.status);
  }

  get list() {
    return this.events.map((frame) => frame.event);
  }
}

/** What is asked of the producer. */
class Target {
  constructor(url, { headers = {}, message = [], input = {}, get, cuts = 200, timeout = 120 } = {}) {
    this.url = url;
    this.headers = headers;
    this.messages = message.length > 0 ? message : ['Describe a rainbow in four sentences.'];
    this.input = input;
    this.template = get ?? '{url}?threadId={threadId}&runId={runId}';
    this.cuts = cuts;
    this.timeout = timeout * 1000;
  }

  /** A first message in a new thread. */
  ask(content = this.messages[0]) {
    return this.again({ threadId: randomUUID(), messages: [{ id: randomUUID(), role: 'user', content }] });
  }

  /** A new run in a thread. */
  again({ threadId, messages = [] }) {
    const common = { protocolVersion: '1.0', state: {}, tools: [], context: [], forwardedProps: {} };
    return { threadId, runId: randomUUID(), ...common, messages, ...this.input };
  }

  post(input, options) {
    return new Answer().read(this, 'POST', this.url, { body: input, ...options });
  }

  get(input, options) {
    const fill = (_, name) => (name === 'url' ? this.url : encodeURIComponent(input[name]));
    return new Answer().read(this, 'GET', this.template.replace(/\{(url|threadId|runId)\}/g, fill), options);
  }
}

// --- what events mean ---------------------------------------------------------------------------

/** Returns what is wrong with a frame that has data, or an empty string. */
function malformed({ data, event }) {
  const words = JSON.stringify(data.slice(0, 60));
  if (typeof event !== 'object' || event === null || Array.isArray(event)) return `${words} is no JSON object`;
  if (typeof event.type !== 'string') return `${words} has no type`;
  const missing = (required[event.type] ?? []).find((member) => event[member] === undefined);
  return missing ? `a ${event.type} has no ${missing}` : '';
}

/** Returns the first breach of the rules for what is opened and closed, or an empty string. */
function misnested(events) {
  const open = new Set();
  const chunks = new Map(); // by their agent, the type of those that are being sent
  for (const [n, event] of events.entries()) {
    const { type, subagentRunId: agent } = event;
    const wrong = (name, how) => `event ${n + 1}, ${type}: the ${name} is ${how}`;
    const chunk = type.endsWith('_CHUNK');
    if (chunk && event[pieces[type]] === undefined && chunks.get(agent) !== type) return wrong(pieces[type], 'missing');
    if (chunk || !besides.test(type)) chunks.set(agent, chunk ? type : undefined);
    for (const { kind, member, start, piece, ends } of items) {
      const owner = member === 'stepName' && event.subagentRunId ? `${event.subagentRunId}/` : '';
      const name = `${kind} ${owner}${event[member]}`;
      if (type === start && open.has(name)) return wrong(name, 'already open');
      if ((type === piece || ends.includes(type)) && !open.has(name)) return wrong(name, 'not open');
      if (type === start) open.add(name);
      if (ends.includes(type)) open.delete(name);
    }
    if (type === 'RUN_FINISHED' && open.size > 0) return wrong([...open][0], 'still open');
    if (terminal(event)) open.clear();
  }
  return '';
}

/** Returns what is wrong with the start of the answer to an input, or an empty string. */
function misbegun(events, { threadId, runId }) {
  const [first] = events;
  if (!first) return 'no event came';
  if (first.type !== 'RUN_STARTED') return `the first event is ${first.type}`;
  if (first.threadId !== threadId || first.runId !== runId) return 'RUN_STARTED does not have the ids of the request';
  const second = events.findIndex((event, n) => n > 0 && event.type === 'RUN_STARTED');
  return second > 0 ? `event ${second + 1} is another RUN_STARTED` : '';
}

/** Returns what is wrong with the end of an answer, or an empty string. */
function misended({ list, broken }) {
  const last = list.findIndex(terminal);
  if (last < 0) return `no terminal event came${broken && `, and the stream ${broken}`}`;
  if (last < list.length - 1) return `${list[last + 1].type} comes after ${list[last].type}`;
  return broken && `after ${list[last].type} the stream ${broken}`;
}

/** Events as they can be compared: a text is one event, however it was cut into pieces. */
function folded(events) {
  const whole = [];
  for (const { timestamp: _, rawEvent: __, metadata: ___, ...event } of events) {
    const last = whole.at(-1);
    const member = pieces[event.type];
    const continues = member && last?.type === event.type && (event[member] ?? last[member]) === last[member];
    if (continues) last.delta = `${last.delta ?? ''}${event.delta ?? ''}`;
    else whole.push(event);
  }
  return whole.map((event) => JSON.stringify(Object.entries(event).sort(([a], [b]) => (a < b ? -1 : 1))));
}

const same = (one, other) => JSON.stringify(folded(one)) === JSON.stringify(folded(other));

/** What a client shows after events: texts, calls and results, by their ids. */
class Shown {
  texts = new Map();
  calls = new Map();
  results = new Map();

  constructor(events) {
    for (const event of events) this.#apply(event);
    for (const [id, { content }] of this.texts) if (content === '') this.texts.delete(id);
  }

  #apply(event) {
    const { type, delta = '' } = event;
    if (type === 'RUN_STARTED') {
      event.input?.messages?.filter(({ id }) => !this.texts.has(id)).forEach((message) => this.#message(message));
    } else if (type === 'MESSAGES_SNAPSHOT') {
      for (const map of [this.texts, this.calls, this.results]) map.clear();
      event.messages?.forEach((message) => this.#message(message));
    } else if (type.startsWith('TEXT_MESSAGE_')) {
      const id = event.messageId ?? [...this.texts.keys()].at(-1); // a later chunk may leave it out
      const opens = type === 'TEXT_MESSAGE_START' || type === 'TEXT_MESSAGE_CHUNK';
      if (opens && !this.texts.has(id)) this.texts.set(id, { role: event.role ?? 'assistant', content: '' });
      if (this.texts.has(id)) this.texts.get(id).content += delta;
    } else if (type === 'TOOL_CALL_RESULT') {
      this.results.set(event.toolCallId, { content: event.content });
    } else if (type.startsWith('TOOL_CALL_')) {
      const id = event.toolCallId ?? [...this.calls.keys()].at(-1);
      const opens = type === 'TOOL_CALL_START' || type === 'TOOL_CALL_CHUNK';
      if (opens && !this.calls.has(id)) this.calls.set(id, { name: event.toolCallName, args: '' });
      if (this.calls.has(id)) this.calls.get(id).args += delta;
    }
  }

  #message({ id, role, content = '', toolCalls = [], toolCallId }) {
    for (const call of toolCalls) this.calls.set(call.id, { name: call.function.name, args: call.function.arguments });
    if (role === 'tool') this.results.set(toolCallId, { content });
    else if (role === 'user' || role === 'assistant') this.texts.set(id, { role, content });
  }
}

/** Returns how what is shown differs from what the run had shown, or an empty string. */
function differs(run, events) {
  const [had, has] = [new Shown(run), new Shown(events)];
  for (const [kind, what] of [['texts', 'text'], ['calls', 'call'], ['results', 'result of the call']]) {
    for (const [id, value] of had[kind]) {
      const now = has[kind].get(id);
      if (!now) return `the ${what} ${id} is missing`;
      if (JSON.stringify(now) !== JSON.stringify(value)) return `the ${what} ${id} is not what the run had shown`;
    }
    const strange = [...has[kind]].find(([id, { role }]) => !had[kind].has(id) && role !== 'user');
    if (strange) return `the ${what} ${strange[0]} is none of the run's`;
  }
  return '';
}

// --- the checks ---------------------------------------------------------------------------------

/** Returns how an answer fails to be what comes after the nth event of a run, or an empty string. */
function wrongTail(run, n, answer) {
  const rest = run.events.slice(n + 1);
  if (answer.broken) return `the stream ${answer.broken}`;
  if (answer.status === 204 && rest.length > 0) return `204, and ${count(rest.length, 'event')} lost`;
  if (answer.status !== 200 && answer.status !== 204) return answer.said;
  if (same(rest.map((frame) => frame.event), answer.list)) return '';
  const ids = new Set(answer.events.map((frame) => frame.id));
  const twice = run.events.slice(0, n + 1).filter((frame) => frame.id !== undefined && ids.has(frame.id)).length;
  if (twice > 0) return `${count(twice, 'event')} came twice`;
  if (answer.list[0]?.type === 'RUN_STARTED') return 'it starts over';
  const lost = rest.filter((frame) => !ids.has(frame.id)).length;
  return lost > 0 ? `${count(lost, 'event')} lost` : 'the events are others than those of the run';
}

/** Tries to continue each run after each of its cursors but the last. */
async function continues({ target, runs }, read) {
  let tried = 0;
  for (const { input, answer } of runs) {
    const ids = answer.events.map((frame) => frame.id);
    const unique = (id) => id !== undefined && ids.indexOf(id) === ids.lastIndexOf(id);
    const places = [...ids.keys()].filter((n) => n < ids.length - 1 && unique(ids[n]));
    const step = Math.max(1, places.length / target.cuts);
    for (let at = 0; at < places.length; at += step) {
      const n = places[Math.floor(at)];
      const got = await read(input, { cursor: ids[n] });
      if (got.refused && tried === 0) return none(`a request with Last-Event-ID is answered with ${got.said}.`);
      const wrong = wrongTail(answer, n, got);
      if (wrong) return fail(`after ${ids[n]}, event ${n + 1} of ${ids.length} (${answer.list[n].type}): ${wrong}.`);
      tried++;
    }
  }
  return pass(`${count(tried, 'cut')}, and each time exactly the rest came.`);
}

/** Judges a second answer to the same runId. */
function ranOnce({ cursors }, input, first, second) {
  if (second.refused) return pass(`the second request is refused with ${second.said}, so the agent ran once.`);
  if (second.broken) return fail(`the second stream ${second.broken}.`);
  if (same(first.list, second.list)) return pass(`the second answer has the same ${count(first.list.length, 'event')}.`);
  const wrong = misbegun(second.list, input) || differs(first.list, second.list);
  if (!wrong) return pass('the second answer shows the same messages.');
  const saw = `the second answer is another one: ${wrong}.`;
  return cursors ? fail(saw) : none(saw);
}

/** Judges the answer to a cursor that the producer cannot know: refused, or the whole run from its start. */
function unknown(run, cursor, way, answer) {
  if (answer.refused && answer.status < 500) return answer.text ? '' : `${way} with ${cursor}: ${answer.status} without a word`;
  if (answer.status !== 200) return `${way} with ${cursor}: ${answer.said}`;
  const came = count(answer.list.length, 'event');
  if (answer.list[0]?.type !== 'RUN_STARTED') return `${way} with ${cursor}: no error and no new start, but ${came}`;
  const wrong = differs(run.list, answer.list);
  return wrong && `${way} with ${cursor}: it starts over, but ${wrong}`;
}

/** Sends a cursor in every way that is offered. */
async function strange({ runs, ways }, change) {
  const { input, answer } = runs[0];
  const cursor = change(answer.events.at(-1)?.id);
  if (Object.keys(ways).length === 0) return none('no request continues after a cursor.');
  if (cursor === undefined) return none('the ids have no number that could be raised.');
  const did = [];
  for (const [way, read] of Object.entries(ways)) {
    const got = await read(input, { cursor });
    const wrong = unknown(answer, cursor, way, got);
    if (wrong) return fail(`${wrong}.`);
    did.push(`${way} ${got.refused ? `is refused with ${got.status}` : 'starts over'}`);
  }
  return pass(`${did.join(', ')}.`);
}

/** Returns what is wrong with the answer to `view`, which shows the thread of a run, or an empty string. */
function badView(input, run, view, answer) {
  const begin = misbegun(answer.list, view);
  const nest = !misnested(run.list) && misnested(answer.list); // what is wrong with the run itself has its own check
  const end = !misended(run) && misended(answer);
  return begin || nest || end || differs([{ type: 'RUN_STARTED', input }, ...run.list], answer.list);
}

/** Whether an answer shows anything of a run at all. */
function shows(run, answer) {
  const { texts, calls } = new Shown(answer.list);
  const had = new Shown(run.list);
  return [...had.texts.keys()].some((id) => texts.has(id)) || [...had.calls.keys()].some((id) => calls.has(id));
}

/** Applies a rule to every run that was made, and says which one breaks it. */
function everyRun({ runs }, rule, fine) {
  for (const { input, answer } of runs) {
    const wrong = rule(answer, input);
    if (wrong) return fail(`${wrong}.`);
  }
  return pass(fine);
}

/** The checks of the runs that were made at the beginning. */
const legal = {
  'content-type': (c) => {
    const rule = ({ status, type }) => {
      const right = status === 200 && /^text\/event-stream\s*(;|$)/i.test(type);
      return right ? '' : `the answer is ${status} ${type || 'without a Content-Type'}`;
    };
    return everyRun(c, rule, `${count(c.runs.length, 'answer')} with 200 and ${c.runs[0].answer.type}.`);
  },

  frames: (c) => {
    const rule = ({ frames, carriageReturns }) => {
      if (carriageReturns) return 'lines end with CR LF, which the official client does not read';
      return frames.filter((frame) => frame.data !== undefined).map(malformed).find(Boolean);
    };
    return everyRun(c, rule, `${count(c.total, 'event')}, each a JSON object with what its type requires.`);
  },

  start: (c) => {
    const rule = ({ list }, input) => misbegun(list, input);
    return everyRun(c, rule, 'RUN_STARTED is first and has the ids of the request.');
  },

  nesting: (c) => {
    const rule = ({ list }) => misnested(list);
    return everyRun(c, rule, 'what is opened is closed: texts, calls, reasoning, steps, subagents.');
  },

  end: (c) => {
    const last = new Set(c.runs.map(({ answer }) => answer.list.at(-1)?.type));
    return everyRun(c, misended, `the last event is ${[...last].join(' or ')}, and the stream closes.`);
  },

  'keep-alive': ({ runs }) => {
    const empty = runs.flatMap(({ answer }) => answer.frames.filter((frame) => frame.data === undefined));
    const marked = empty.find((frame) => frame.id !== undefined);
    if (marked) return fail(`a frame without an event has the id ${marked.id}, which moves a client's cursor.`);
    const silence = Math.max(...runs.map(({ answer }) => answer.silence)) / 1000;
    if (silence > 30) return fail(`nothing came for ${silence} s, which proxies take for a dead connection.`);
    const comments = empty.reduce((sum, frame) => sum + frame.comments, 0);
    if (comments === 0) return none(`no comment came; the longest silence was ${silence} s.`);
    return pass(`${count(comments, 'comment')}, none with an id; the longest silence was ${silence} s.`);
  },

  ids: ({ runs, cursors, total }) => {
    if (!cursors) return none('no event has an id.');
    const [bare, ...more] = runs.flatMap(({ answer }) => answer.events).filter((frame) => !frame.id);
    if (bare) return fail(`${more.length + 1} of ${count(total, 'event')} without an id, the first a ${bare.event.type}.`);
    return pass(`each of ${count(total, 'event')} has one, like ${runs[0].answer.events[0].id}.`);
  },

  order: ({ runs, cursors }) => {
    if (!cursors) return none('no event has an id.');
    for (const { answer } of runs) {
      const ids = answer.events.flatMap(({ id }) => (id ? [id] : []));
      const twice = ids.find((id, n) => ids.indexOf(id) < n);
      if (twice) return fail(`the id ${twice} stands on two events.`);
      const numbers = ids.map((id) => /^\d+(?![0-9a-z])/i.exec(id)?.[0]); // ids may be words, too
      const lower = (number, n) => n > 0 && BigInt(number) < BigInt(numbers[n - 1]);
      const falls = numbers.every(Boolean) ? numbers.findIndex(lower) : -1;
      if (falls > 0) return fail(`the id ${ids[falls]} comes after ${ids[falls - 1]}.`);
    }
    return pass('no id comes twice, and none is lower than the one before.');
  },
};

/** The checks that ask again: each finds out more about the producer, and may use what those before it have. */
const resumable = {
  again: async (c) => {
    const { input, answer } = c.runs[0];
    return ranOnce(c, input, answer, await c.target.post(input));
  },

  'at-once': async (c) => {
    const input = c.target.ask();
    const place = Math.ceil(c.runs[0].answer.events.length / 3);
    let second;
    const comeAgain = (_, { events }) => void (events.length === place && (second = c.target.post(input)));
    const first = await c.target.post(input, { cut: comeAgain });
    return second ? ranOnce(c, input, first, await second) : none('the run had too few events.');
  },

  'post-resume': async (c) => {
    if (!c.cursors) return none('no event has an id to continue after.');
    const read = (input, options) => c.target.post(input, options);
    const judged = await continues(c, read);
    if (judged.result === 'pass') c.ways.POST = read;
    return judged;
  },

  'get-resume': async (c) => {
    const { input, answer } = c.runs[0];
    const read = (of, options) => c.target.get(of, options);
    const whole = await read(input);
    if (whole.status !== 200 || !whole.type.startsWith('text/event-stream')) {
      return none(`a GET of the run is answered with ${whole.said} (${whole.type}); --get says where else to look.`);
    }
    if (!same(answer.list, whole.list)) {
      const wrong = differs(answer.list, whole.list) || 'the events are others';
      return fail(`without a cursor a GET does not stream the run: ${wrong}.`);
    }
    if (!c.cursors) return none('a GET streams the run, but no event has an id to continue after.');
    const judged = await continues(c, read);
    if (judged.result === 'pass') c.ways.GET = read;
    return judged;
  },

  'caught-up': async ({ runs, ways }) => {
    if (Object.keys(ways).length === 0) return none('no request continues after a cursor.');
    const did = [];
    const { input, answer } = runs[0];
    const last = answer.events.findLastIndex((frame) => frame.id);
    for (const [way, read] of Object.entries(ways)) {
      const got = await read(input, { cursor: answer.events[last].id });
      const wrong = wrongTail(answer, last, got);
      if (wrong) return fail(`${way} after the last event: ${wrong}.`);
      did.push(`${way} ${got.status}`);
    }
    return pass(`after the last event nothing comes: ${did.join(', ')}.`);
  },

  'unknown-cursor': (c) => strange(c, () => `no-such-cursor-${randomUUID()}`),

  'cursor-beyond': (c) => {
    const raised = (id) => id.replace(/\d+/, (digits) => String(BigInt(digits) + 1_000_000n));
    return strange(c, (id) => (/\d/.test(id) ? raised(id) : undefined));
  },

  cut: async ({ target, runs, ways }) => {
    const [[way, read] = []] = Object.entries(ways);
    if (!way) return none('no request continues after a cursor.');
    const many = runs[0].answer.events.length;
    const finishes = runs[0].answer.list.some(terminal);
    const places = [...new Set([1, Math.ceil(many / 3), Math.ceil((2 * many) / 3)])];
    for (const place of places) {
      const input = target.ask();
      const before = await target.post(input, { cut: ({ id }, { events }) => id && events.length >= place });
      const after = await read(input, { cursor: before.events.at(-1)?.id });
      const was = `the connection was cut after event ${place}`;
      if (after.refused) return fail(`${was}, and ${way} is refused with ${after.said}.`);
      const list = [...before.list, ...after.list];
      if (finishes && !list.some(terminal)) return fail(`${was}, and the run did not finish.`);
      const rest = await read(input, { cursor: before.events[0].id });
      if (!same([before.list[0], ...rest.list], list)) return fail(`${was}, and both parts together are not the run.`);
    }
    return pass(`the connection was cut after event ${places.join(', ')}; the run went on, and ${way} brought the rest.`);
  },

  hydrate: async ({ target, runs }) => {
    const { input, answer } = runs[0];
    const view = target.again({ threadId: input.threadId });
    const got = await target.post(view);
    if (got.refused) return none(`a run without messages is answered with ${got.said}.`);
    if (!shows(answer, got)) return none('a run without messages shows nothing of the thread.');
    const wrong = badView(input, answer, view, got);
    if (wrong) return fail(`a run without messages does not show the thread: ${wrong}.`);
    return pass(`a run without messages shows the thread, in ${count(got.list.length, 'event')}.`);
  },

  reload: async ({ target, runs }) => {
    const input = target.ask();
    const view = target.again({ threadId: input.threadId });
    const place = Math.ceil(runs[0].answer.events.length / 3);
    let [ended, inTime, second] = [false, false, undefined];
    const look = () => target.post(view, { cut: () => void (inTime ||= !ended) });
    const comeBack = (_, { events }) => void (events.length === place && (second = look()));
    const run = await target.post(input, { cut: comeBack });
    ended = true;
    const got = (await second) ?? new Answer();
    const what = 'a run without messages, while another is under way,';
    if (got.status !== 200) return none(`${what} is answered with ${got.said}.`);
    if (!shows(run, got)) return none(`${what} shows nothing of the thread.`);
    const wrong = badView(input, run, view, got);
    if (wrong) return fail(`${what} does not show all of it: ${wrong}.`);
    if (!inTime) return none('the run was over before anybody could come; try a --message with a longer answer.');
    return pass(`${what} shows what was said and then the rest, once.`);
  },
};

const checks = { ...legal, ...resumable };

/** Runs all checks against a producer, and returns what each of them saw. */
export async function conformance(url, options) {
  const target = new Target(url, options);
  const runs = [];
  for (const content of target.messages) {
    const input = target.ask(content);
    const answer = await target.post(input);
    const why = answer.broken ? `the connection ${answer.broken}` : answer.said;
    if (answer.events.length === 0) throw new Error(`${url} did not stream a run: ${why}`);
    runs.push({ input, answer });
  }
  const frames = runs.flatMap(({ answer }) => answer.events);
  const c = { target, runs, ways: {}, total: frames.length, cursors: frames.some((frame) => frame.id) };
  const seen = [];
  for (const [check, judge] of Object.entries(checks)) seen.push({ check, ...(await judge(c)) });
  const sum = (result) => seen.filter((one) => one.result === result).length;
  return { url, passed: sum('pass'), failed: sum('fail'), notOffered: sum('not offered'), checks: seen };
}

/** Reads the command line, runs the checks and prints them; returns the exit code. */
async function main(args) {
  const [one, many, yes] = [{ type: 'string' }, { type: 'string', multiple: true }, { type: 'boolean' }];
  const options = { header: many, message: many, input: one, get: one, cuts: one, timeout: one, json: yes, help: yes };
  let report;
  try {
    const { values, positionals } = parseArgs({ args, options, allowPositionals: true });
    if (values.help) {
      console.log(usage);
      return 0;
    }
    if (positionals.length !== 1) throw new Error(usage);
    const pairs = (values.header ?? []).map((header) => /^([^:]+):\s*(.*)$/.exec(header)?.slice(1) ?? [header, '']);
    const headers = Object.fromEntries(pairs);
    const number = (text) => (text === undefined ? undefined : Number(text));
    const input = JSON.parse(values.input ?? '{}');
    const [cuts, timeout] = [number(values.cuts), number(values.timeout)];
    report = await conformance(positionals[0], { ...values, headers, input, cuts, timeout });
    if (values.json) console.log(JSON.stringify(report, null, 2));
  } catch (error) {
    console.error(error.message);
    return 2;
  }
  if (!args.includes('--json')) {
    for (const { check, result, saw } of report.checks) console.log(`${result.padEnd(11)}  ${check.padEnd(14)}  ${saw}`);
    console.log(`${report.passed} passed, ${report.failed} failed, ${report.notOffered} not offered`);
  }
  return report.failed > 0 ? 1 : 0;
}

const command = process.argv[1] && pathToFileURL(realpathSync(process.argv[1])).href;
if (import.meta.url === command) process.exitCode = await main(process.argv.slice(2));
