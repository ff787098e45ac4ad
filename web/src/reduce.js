// @ts-check
// What a person sees of a thread, as a pure function of AG-UI events: view and event in,
// new view out. Unchanged parts keep their identity, so the page redraws only what has
// changed.

import { notice } from './notices.js';
import { apply } from './patch.js';

/**
 * @typedef {object} Item one row of the conversation
 * @property {'text'|'reasoning'|'call'|'activity'|'step'|'agent'|'note'} kind
 * @property {string} key unique in a view
 * @property {string} [id] the protocol's id
 * @property {string} [role] text
 * @property {string} [text] text, reasoning, note, agent
 * @property {string[]} [parts] text: kinds of content that are not text
 * @property {boolean} [open] still growing
 * @property {boolean} [hidden] reasoning: the provider does not show it
 * @property {string} [name] call, step, agent
 * @property {string} [args] call: JSON as far as it has arrived
 * @property {'pending'|'running'|'waiting'|'done'|'failed'|'none'} [status] call, agent
 * @property {string} [result] call
 * @property {any} [content] activity
 * @property {'info'|'error'} [tone] note
 * @property {string} [code] note
 * @property {string} [hint] note
 * @property {number} [start] the server's milliseconds
 * @property {number} [end] the server's milliseconds
 *
 * @typedef {object} View
 * @property {string} runId the last run shown, by its real id
 * @property {'idle'|'running'|'waiting'|'failed'|'stopped'|'done'} status
 * @property {Item[]} items
 * @property {any} state the shared state; undefined if it is not known
 * @property {any[]} interrupts open questions
 * @property {string[]} outside names of the tools whose calls wait to be finished from outside
 * @property {any[]} usage tokens of the last run
 * @property {Item[]} [aside] what an empty snapshot removed, until the full one arrives
 * @property {{text: string, call: string, reasoning: string}} chunks items that CHUNK events opened
 */

/** @returns {View} */
export const empty = () => ({
  runId: '', status: 'idle', items: [], state: undefined, interrupts: [], outside: [], usage: [],
  chunks: { text: '', call: '', reasoning: '' },
});

/** @param {View} view @param {string} key */
const find = (view, key) => view.items.findLast((i) => i.key === key);

/**
 * Changes the item with that key, or adds it.
 * @param {View} view @param {string} key @param {(old: Item | undefined) => any} change members to set
 * @returns {View}
 */
function put(view, key, change) {
  const at = view.items.findLastIndex((i) => i.key === key);
  const items = [...view.items];
  if (at < 0) items.push({ key, ...change(undefined) });
  else items[at] = { ...items[at], ...change(items[at]) };
  return { ...view, items };
}

/** Content is a string or a list of parts. @param {any} content */
function textOf(content) {
  if (typeof content === 'string') return { text: content, parts: [] };
  const list = Array.isArray(content) ? content : [];
  return {
    text: list.filter((p) => p?.type === 'text').map((p) => p.text).join('\n'),
    parts: list.filter((p) => p?.type !== 'text').map((p) => String(p?.type)),
  };
}

/** @param {any} content */
function resultOf(content) {
  const { text, parts } = textOf(content);
  return [text, ...parts.map((p) => `[${p}]`)].filter(Boolean).join('\n');
}

/** Failed results are marked by the tool message's error, or by Holdfast's metadata. @param {any} m */
const failed = (m) => typeof m.error === 'string' || m.metadata?.holdfast?.failed === true;

/**
 * Shows a message that the person has just sent, before the server has confirmed it.
 * @param {View} view @param {any} message @returns {View}
 */
export function addLocal(view, message) {
  return put(view, 't:' + message.id, () => ({ kind: 'text', id: message.id, role: 'user', ...textOf(message.content), open: false }));
}

/** @param {View} view @param {string} id @returns {View} */
export const removeLocal = (view, id) => ({ ...view, items: view.items.filter((i) => i.key !== 't:' + id) });

/**
 * Adds or replaces a remark of the page itself.
 * @param {View} view @param {string} key @param {{text: string, tone?: 'info'|'error', code?: string, hint?: string}} note
 * @returns {View}
 */
export function note(view, key, note) {
  // If a remark is repeated, it belongs where it is repeated.
  const rest = { ...view, items: view.items.filter((i) => i.key !== 'n:' + key) };
  return put(rest, 'n:' + key, () => ({ kind: 'note', tone: 'info', ...note }));
}

/** @param {View} view @param {any} m one message of a snapshot @param {Item[]} out */
function fromMessage(view, m, out) {
  if (m.role === 'reasoning') {
    const old = find(view, 'r:' + m.id);
    out.push({ kind: 'reasoning', key: 'r:' + m.id, id: m.id, text: m.content ?? '', open: false, hidden: !m.content, start: old?.start, end: old?.end });
  } else if (m.role === 'tool') {
    const at = out.findLastIndex((i) => i.key === 'c:' + m.toolCallId);
    const call = at < 0 ? { kind: /** @type {const} */ ('call'), key: 'c:' + m.toolCallId, id: m.toolCallId, name: 'tool', args: '' } : out[at];
    const done = { ...call, status: /** @type {'failed' | 'done'} */ (failed(m) ? 'failed' : 'done'), result: resultOf(m.content) || m.error || '' };
    if (at < 0) out.push(done);
    else out[at] = done;
  } else if (m.role === 'activity') {
    // Of an image that was left out of a snapshot for its size, what is shown stays.
    const old = m.content?.leftOut ? find(view, 'a:' + m.id) : undefined;
    out.push({ kind: 'activity', key: 'a:' + m.id, id: m.id, name: m.activityType, content: old?.content?.url ? old.content : m.content });
  } else {
    const { text, parts } = textOf(m.content);
    if (text || parts.length || !m.toolCalls) out.push({ kind: 'text', key: 't:' + m.id, id: m.id, role: m.role, text, parts, open: false });
    for (const c of m.toolCalls ?? []) {
      const old = find(view, 'c:' + c.id);
      out.push({
        kind: 'call', key: 'c:' + c.id, id: c.id, name: c.function?.name ?? 'tool', args: c.function?.arguments ?? '',
        status: 'running', start: old?.start, end: old?.end,
      });
    }
  }
}

/** Whether an item is what a model has made besides text. @param {Item} i */
export const made = (i) => i.kind === 'activity' && /^holdfast\.(image|audio|video|document)$/.test(i.name ?? '');

/**
 * A snapshot is the truth about messages: a missing message was taken back, and so was a
 * missing image. Remarks, other activities, steps and subagents are not in it; each stays after the last remaining
 * message that was before it. For the sake of stock clients the server may send an empty
 * snapshot before the full one; the two are treated as one.
 * @param {View} view @param {any[]} messages @returns {View}
 */
function reset(view, messages) {
  if (!messages.length) return { ...view, items: [], aside: view.items };
  if (view.aside) view = { ...view, items: [...view.aside, ...view.items], aside: undefined };
  /** @type {Item[]} */
  const fresh = [];
  for (const m of messages) fromMessage(view, m, fresh);
  const keys = new Set(fresh.map((i) => i.key));
  /** @type {Map<string, Item[]>} */
  const behind = new Map();
  let anchor = '';
  for (const old of view.items) {
    if (keys.has(old.key)) anchor = old.key;
    else if (!['text', 'reasoning', 'call'].includes(old.kind) && !made(old)) behind.set(anchor, [...(behind.get(anchor) ?? []), old]);
  }
  const items = [...(behind.get('') ?? [])];
  for (const i of fresh) items.push(i, ...(behind.get(i.key) ?? []));
  return { ...view, items };
}

/** Closes what is open when a run ends. @param {View} view @param {Set<string>} waiting ids of waiting calls @returns {View} */
function closeAll(view, waiting) {
  const items = view.items.map((i) => {
    if (i.kind === 'call' && (i.status === 'pending' || i.status === 'running' || i.status === 'waiting')) {
      return { ...i, status: /** @type {'waiting' | 'none'} */ (waiting.has(i.id ?? '') ? 'waiting' : 'none') };
    }
    if (i.kind === 'agent' && i.status === 'running') return { ...i, status: /** @type {const} */ ('none') };
    return i.open ? { ...i, open: false } : i;
  });
  return { ...view, items, chunks: { text: '', call: '', reasoning: '' } };
}

/** @param {'text'|'call'|'reasoning'} lane @param {string} id */
const laneKey = (lane, id) => ({ text: 't:', call: 'c:', reasoning: 'r:' })[lane] + id;

/** @param {View} view @param {'text'|'call'|'reasoning'} lane @param {any} [e] @returns {View} */
function closeChunk(view, lane, e) {
  const id = view.chunks[lane];
  if (!id) return view;
  const chunks = { ...view.chunks, [lane]: '' };
  return put({ ...view, chunks }, laneKey(lane, id), () => ({ open: false, end: e?.timestamp, ...(lane === 'call' ? { status: 'running' } : {}) }));
}

/** An item that CHUNK events opened ends with the next other event of its kind. @param {View} view @param {any} e @returns {View} */
function closeChunks(view, e) {
  const t = e.type;
  if (t.endsWith('_CHUNK') || t === 'REASONING_ENCRYPTED_VALUE') return view;
  const all = t.startsWith('RUN_') || t === 'MESSAGES_SNAPSHOT' || t === 'CUSTOM';
  if (all || t.startsWith('TEXT_MESSAGE_')) view = closeChunk(view, 'text', e);
  if (all || t.startsWith('TOOL_CALL_')) view = closeChunk(view, 'call', e);
  if (all || t.startsWith('REASONING_')) view = closeChunk(view, 'reasoning', e);
  return view;
}

/** @param {View} view @param {'text'|'call'|'reasoning'} lane @param {any} e @param {string} idName @param {string} start @param {string} content @returns {View} */
function chunk(view, lane, e, idName, start, content) {
  const id = e[idName] ?? view.chunks[lane];
  if (!id) return view; // a first chunk must name its item
  if (id !== view.chunks[lane]) {
    view = closeChunk(view, lane, e);
    view = table[start](view, { ...e, [idName]: id });
    view = { ...view, chunks: { ...view.chunks, [lane]: id } };
  }
  return e.delta ? table[content](view, { ...e, [idName]: id }) : view;
}

/** START of a known id opens it again: what follows is appended. @type {Record<string, (view: View, e: any) => View>} */
const table = {
  RUN_STARTED(view, e) {
    const runId = e.metadata?.holdfast?.runId ?? e.runId;
    view = { ...view, runId, status: 'running', interrupts: [], outside: [], usage: [] };
    for (const m of e.input?.messages ?? []) {
      if (!find(view, 't:' + m.id) && m.role === 'user') view = addLocal(view, m);
    }
    return view;
  },
  RUN_FINISHED(view, e) {
    const outcome = e.outcome ?? { type: 'success' };
    const interrupts = outcome.type === 'interrupt' ? outcome.interrupts : [];
    /** @type {any[]} */
    const outside = e.metadata?.holdfast?.outsideCalls ?? [];
    const waiting = new Set([...(outcome.pendingToolCallIds ?? []), ...[...interrupts, ...outside].map((i) => i.toolCallId)]);
    view = closeAll({ ...view, interrupts, outside: outside.map((c) => c.toolName), usage: e.usage ?? [] }, waiting);
    if (outcome.type === 'cancelled') return note({ ...view, status: 'stopped' }, 'end:' + view.runId, { text: 'Stopped.' });
    return { ...view, status: outcome.type === 'interrupt' ? 'waiting' : 'done' };
  },
  RUN_ERROR(view, e) {
    if (e.code === 'stream_cut') return view; // the stream ended, but the run did not
    view = closeAll({ ...view, status: 'failed', usage: e.usage ?? [] }, new Set());
    return note(view, 'end:' + view.runId, { tone: 'error', text: e.message, code: e.code, hint: e.metadata?.holdfast?.hint });
  },
  STEP_STARTED: (view, e) => put(view, `s:${view.runId}:${e.stepName}`, () => ({ kind: 'step', name: e.stepName, open: true })),
  STEP_FINISHED: (view, e) => put(view, `s:${view.runId}:${e.stepName}`, () => ({ kind: 'step', name: e.stepName, open: false })),

  TEXT_MESSAGE_START: (view, e) => put(view, 't:' + e.messageId, (old) => ({ kind: 'text', id: e.messageId, role: e.role ?? 'assistant', text: old?.text ?? '', open: true })),
  TEXT_MESSAGE_CONTENT: (view, e) => put(view, 't:' + e.messageId, (old) => ({ kind: 'text', id: e.messageId, role: old?.role ?? 'assistant', text: (old?.text ?? '') + e.delta })),
  TEXT_MESSAGE_END: (view, e) => put(view, 't:' + e.messageId, () => ({ kind: 'text', open: false })),
  TEXT_MESSAGE_CHUNK: (view, e) => chunk(view, 'text', e, 'messageId', 'TEXT_MESSAGE_START', 'TEXT_MESSAGE_CONTENT'),

  TOOL_CALL_START: (view, e) => put(view, 'c:' + e.toolCallId, (old) => ({ kind: 'call', id: e.toolCallId, name: e.toolCallName, args: old?.args ?? '', status: 'pending' })),
  TOOL_CALL_ARGS: (view, e) => put(view, 'c:' + e.toolCallId, (old) => ({ kind: 'call', args: (old?.args ?? '') + e.delta })),
  TOOL_CALL_END: (view, e) => put(view, 'c:' + e.toolCallId, () => ({ kind: 'call', status: 'running', start: e.timestamp })),
  TOOL_CALL_CHUNK: (view, e) => chunk(view, 'call', e, 'toolCallId', 'TOOL_CALL_START', 'TOOL_CALL_ARGS'),
  TOOL_CALL_RESULT: (view, e) => put(view, 'c:' + e.toolCallId, (old) => ({
    kind: 'call', id: e.toolCallId, name: old?.name ?? 'tool', args: old?.args ?? '', status: failed(e) ? 'failed' : 'done', result: resultOf(e.content), end: e.timestamp,
  })),

  STATE_SNAPSHOT: (view, e) => ({ ...view, state: e.snapshot }),
  STATE_DELTA(view, e) {
    try {
      return { ...view, state: apply(view.state, e.delta) };
    } catch {
      return view; // a patch that does not fit changes nothing (AG-UI 1.0)
    }
  },
  MESSAGES_SNAPSHOT: (view, e) => reset(view, e.messages),

  ACTIVITY_SNAPSHOT(view, e) {
    if (e.replace === false && find(view, 'a:' + e.messageId)) return view;
    return put(view, 'a:' + e.messageId, () => ({ kind: 'activity', id: e.messageId, name: e.activityType, content: e.content }));
  },
  ACTIVITY_DELTA(view, e) {
    const old = find(view, 'a:' + e.messageId);
    if (!old) return view;
    try {
      const content = apply(old.content, e.patch);
      return put(view, 'a:' + e.messageId, () => ({ content }));
    } catch {
      return view;
    }
  },

  REASONING_MESSAGE_START: (view, e) => put(view, 'r:' + e.messageId, (old) => ({ kind: 'reasoning', id: e.messageId, text: old?.text ?? '', open: true, hidden: false, start: old?.start ?? e.timestamp })),
  REASONING_MESSAGE_CONTENT: (view, e) => put(view, 'r:' + e.messageId, (old) => ({ kind: 'reasoning', text: (old?.text ?? '') + e.delta })),
  REASONING_MESSAGE_END: (view, e) => put(view, 'r:' + e.messageId, () => ({ kind: 'reasoning', open: false, end: e.timestamp })),
  REASONING_MESSAGE_CHUNK: (view, e) => chunk(view, 'reasoning', e, 'messageId', 'REASONING_MESSAGE_START', 'REASONING_MESSAGE_CONTENT'),
  REASONING_ENCRYPTED_VALUE(view, e) {
    if (e.subtype !== 'message' || find(view, 't:' + e.entityId)) return view;
    return put(view, 'r:' + e.entityId, (old) => (old ? {} : { kind: 'reasoning', id: e.entityId, text: '', hidden: true, open: false }));
  },

  SUBAGENT_STARTED: (view, e) => put(view, 'g:' + e.subagentRunId, () => ({ kind: 'agent', id: e.subagentRunId, name: e.name, text: e.description ?? '', status: 'running', start: e.timestamp })),
  SUBAGENT_FINISHED: (view, e) => put(view, 'g:' + e.subagentRunId, () => ({ kind: 'agent', status: e.outcome?.type === 'suspended' ? 'waiting' : 'done', end: e.timestamp })),
  SUBAGENT_ERROR: (view, e) => put(view, 'g:' + e.subagentRunId, () => ({ kind: 'agent', status: 'failed', text: e.message, end: e.timestamp })),

  CUSTOM(view, e) {
    const text = notice(e.name, e.value);
    if (!text) return view;
    // A replay repeats it with the same time and the same words.
    return note(view, `${e.name}:${view.runId}:${e.timestamp ?? ''}:${JSON.stringify(e.value)}`, { text });
  },
};

/**
 * Returns the view after an event. Events it does not know change nothing.
 * @param {View} view @param {any} event @returns {View}
 */
export function reduce(view, event) {
  const step = Object.prototype.hasOwnProperty.call(table, event?.type) ? table[event.type] : undefined;
  return step ? step(closeChunks(view, event), event) : view;
}

/** Whether an event is the last one of its run. @param {any} e */
export const isEnd = (e) => e.type === 'RUN_FINISHED' || (e.type === 'RUN_ERROR' && e.code !== 'stream_cut');
