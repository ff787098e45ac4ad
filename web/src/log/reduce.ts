// A person's view of a thread, as a pure function: reduce(log, position). Chat, state,
// replay and time travel are all views of it. Each view is made from an earlier one, which
// is kept every now and then, so that going on costs one record and going back a few hundred.

import { branched } from './branches';
import { Fold, empty } from './fold';
import { fields, holdfast, isFields, list, text, textOr, tooDeep } from './json';
import { addMessages, snapshot } from './messages';
import { notice } from './notices';
import { apply } from './patch';
import type { Log, LogEvent, LogRecord } from './record';
import { giveUp, takeover } from './seam';
import { closeChunks, streams, type Handler } from './streams';
import { usageOf } from './tokens';
import type { Interrupt, Item, OutsideCall, RunView, Status, View } from './view';

export { empty } from './fold';

function note(fold: Fold, key: string, said: { text: string; tone?: 'info' | 'error'; code?: string; hint?: string; name?: string; value?: unknown }): void {
  fold.remove(key); // if a remark is repeated, it belongs where it is repeated
  fold.put({ ...fold.base(key, ''), open: false, kind: 'note', tone: 'info', code: '', hint: '', name: '', value: undefined, ...said });
}

function started(fold: Fold, event: LogEvent): void {
  const id = fold.record.runId;
  const { number: first, at } = fold.record;
  const process = text(holdfast(event)['process']);
  const fresh: RunView = { id, status: 'running', first, last: 0, usage: [], code: '', takeovers: 0, process, ...(at === undefined ? {} : { at }) };
  const known = fold.runs.some((run) => run.id === id);
  fold.runId = id;
  fold.status = 'running';
  fold.interrupts = fold.outside = fold.pending = fold.usage = [];
  if (known) fold.run({ status: 'running' });
  else fold.runs = [...fold.runs, fresh];
  fold.set({ before: { items: fold.items, number: fold.number }, beginning: true, cuts: [], catching: [], taken: '' });
  // The list was just kept: what follows must not change it.
  fold.reset(fold.items.map((item) => (item.kind === 'question' && item.open ? { ...item, open: false } : item)));
  addMessages(fold, fields(event['input'])['messages']);
}

/** Closes what is open when a run ends. */
function closeAll(fold: Fold, waiting: ReadonlySet<string>): void {
  const close = (item: Item): Item => {
    if (item.kind === 'call' && (item.status === 'pending' || item.status === 'running' || item.status === 'waiting')) {
      return { ...item, open: false, status: waiting.has(item.id) ? 'waiting' : 'none' };
    }
    if (item.kind === 'agent' && item.status === 'running') return { ...item, open: false, status: 'none' };
    return item.open && item.kind !== 'question' ? { ...item, open: false } : item;
  };
  fold.reset(fold.items.map(close));
  fold.set({ chunks: { text: '', call: '', reasoning: '' }, beginning: false });
}

function ended(fold: Fold, event: LogEvent, status: Status, code: string): void {
  const { number: last, at } = fold.record;
  fold.status = status;
  fold.usage = usageOf(event['usage']);
  const run = fold.runs.find((each) => each.id === fold.runId);
  const usage = last === 0 && run !== undefined && run.usage.length > 0 ? run.usage : fold.usage;
  fold.usage = usage;
  fold.run({ status, code, usage, ...(last === 0 ? {} : { last }), ...(at === undefined ? {} : { end: at }), ...(event['result'] === undefined ? {} : { result: event['result'] }) });
}

const isInterrupt = (value: unknown): value is Interrupt => isFields(value) && typeof value['id'] === 'string';

function outsideOf(event: LogEvent): OutsideCall[] {
  return list(holdfast(event)['outsideCalls']).map(fields).map((call) => {
    const expiresAt = textOr(call['expiresAt']);
    return { toolCallId: text(call['toolCallId']), toolName: text(call['toolName']), abandonable: call['abandonable'] === true, ...(expiresAt === undefined ? {} : { expiresAt }) };
  });
}

function finished(fold: Fold, event: LogEvent): void {
  const outcome = fields(event['outcome']);
  fold.interrupts = outcome['type'] === 'interrupt' ? list(outcome['interrupts']).filter(isInterrupt) : [];
  fold.outside = outsideOf(event);
  fold.pending = list(outcome['pendingToolCallIds']).map(text);
  closeAll(fold, new Set([...fold.pending, ...[...fold.interrupts, ...fold.outside].map((each) => each.toolCallId ?? '')]));
  for (const interrupt of fold.interrupts) {
    fold.remove('q:' + interrupt.id);
    fold.putAfter('c:' + (interrupt.toolCallId ?? ''), { ...fold.base('q:' + interrupt.id, interrupt.id), kind: 'question', interrupt });
  }
  const status: Status = outcome['type'] === 'cancelled' ? 'stopped' : fold.interrupts.length > 0 ? 'waiting' : 'done';
  ended(fold, event, status, '');
  if (status === 'stopped') note(fold, 'end:' + fold.runId, { text: 'Stopped.' });
}

function failed(fold: Fold, event: LogEvent): void {
  if (event['code'] === 'stream_cut') return; // the stream ended, but the run did not
  closeAll(fold, new Set());
  const code = text(event['code']);
  // A thread that went back into the middle of a run stands there. Nothing has failed.
  if (code === 'mid_execution') return ended(fold, event, 'stopped', code);
  ended(fold, event, 'failed', code);
  note(fold, 'end:' + fold.runId, { tone: 'error', text: text(event['message']) || 'The run failed.', code, hint: text(holdfast(event)['hint']) });
}

function setState(fold: Fold, state: unknown): void {
  fold.state = state;
  fold.stateAt = fold.record.number;
}

function activity(fold: Fold, event: LogEvent): void {
  const id = text(event['messageId']);
  const key = 'a:' + id;
  const old = fold.get(key, 'activity');
  if (event['replace'] === false && old !== undefined) return;
  const [name, content] = [text(event['activityType']), event['content']];
  if (old !== undefined) fold.change(key, 'activity', { name, content });
  else fold.put({ ...fold.base(key, id), open: false, kind: 'activity', name, content });
}

function messages(fold: Fold, event: LogEvent): void {
  const before = fold.inner.aside ?? fold.items;
  snapshot(fold, event['messages']);
  if (fold.inner.taken !== '' && fold.inner.aside === undefined) giveUp(fold, before);
}

function custom(fold: Fold, event: LogEvent): void {
  const [name, value] = [text(event['name']), event['value']];
  if (name === 'holdfast.takeover') return takeover(fold, value);
  if (name === 'holdfast.branched') return branched(fold, value);
  const said = notice(name, value);
  if (said !== '') note(fold, `n:${name}:${fold.record.number || `${fold.record.at ?? ''}:${fold.runId}`}`, { text: said, name, value });
}

/** Steps and subagents. */
const structure: Readonly<Record<string, Handler>> = {
  STEP_STARTED: (fold, event) => {
    const name = text(event['stepName']);
    fold.put({ ...fold.base(`s:${fold.runId}:${text(event['subagentRunId'])}:${name}`, ''), kind: 'step', name });
  },
  STEP_FINISHED: (fold, event) => fold.change(`s:${fold.runId}:${text(event['subagentRunId'])}:${text(event['stepName'])}`, 'step', { open: false, ...(fold.record.at === undefined ? {} : { end: fold.record.at }) }),
  SUBAGENT_STARTED: (fold, event) => {
    const id = text(event['subagentRunId']);
    fold.put({ ...fold.base('g:' + id, id), kind: 'agent', name: text(event['name']), text: text(event['description']), status: 'running', parentCallId: text(event['parentToolCallId']) });
  },
  SUBAGENT_FINISHED: (fold, event) => {
    const suspended = fields(event['outcome'])['type'] === 'suspended';
    fold.change('g:' + text(event['subagentRunId']), 'agent', { open: false, status: suspended ? 'waiting' : 'done', ...(fold.record.at === undefined ? {} : { end: fold.record.at }) });
  },
  SUBAGENT_ERROR: (fold, event) => fold.change('g:' + text(event['subagentRunId']), 'agent', { open: false, status: 'failed', text: text(event['message']), ...(fold.record.at === undefined ? {} : { end: fold.record.at }) }),
};

const handlers = new Map<string, Handler>(Object.entries({
  ...streams,
  ...structure,
  RUN_STARTED: started,
  RUN_FINISHED: finished,
  RUN_ERROR: failed,
  STATE_SNAPSHOT: (fold, event) => setState(fold, event['snapshot']),
  // A thread without a state has an empty one, for code that changes it.
  STATE_DELTA: (fold, event) => setState(fold, apply(fold.state ?? {}, event['delta'])),
  MESSAGES_SNAPSHOT: messages,
  ACTIVITY_SNAPSHOT: activity,
  ACTIVITY_DELTA: (fold, event) => {
    const key = 'a:' + text(event['messageId']);
    const old = fold.get(key, 'activity');
    if (old !== undefined) fold.change(key, 'activity', { content: apply(old.content, event['patch']) });
  },
  CUSTOM: custom,
} satisfies Record<string, Handler>));

function take(fold: Fold, record: LogRecord): void {
  fold.record = record;
  fold.position++;
  if (record.runId !== '' && record.event.type !== 'RUN_STARTED') fold.runId = record.runId;
  const handler = handlers.get(record.event.type);
  if (handler !== undefined && !tooDeep(record.event)) {
    try {
      closeChunks(fold, record.event.type);
      handler(fold, record.event);
    } catch {
      // A patch that does not fit changes nothing (AG-UI 1.0), and neither does what is no event.
    }
  }
  if (record.number !== 0) fold.number = record.number;
  const { at } = record;
  if (at !== undefined && at !== fold.inner.at) fold.set({ at });
}

/** The memory of a log: views to begin from, and the newest one. */
interface Memory {
  readonly kept: View[];
  readonly recent: Map<number, View>;
  head: Fold;
}

const memoryKey = {};

/** How many of the views that were asked for last are kept as they are. */
const recentViews = 8;

function memoryOf(log: Log): Memory {
  const { memory } = log.tape;
  const known = memory.get(memoryKey) as Memory | undefined;
  if (known !== undefined) return known;
  const fresh: Memory = { kept: [empty], recent: new Map(), head: new Fold(empty) };
  memory.set(memoryKey, fresh);
  return fresh;
}

/** Takes the fold to a position. `keep` gets views to begin from later. */
function advance(log: Log, fold: Fold, position: number, keep?: View[]): void {
  while (fold.position < position) {
    take(fold, log.at(fold.position) as LogRecord);
    // Kept views are as long as their lists, so long conversations have fewer of them.
    if (keep !== undefined && fold.position - (keep.at(-1)?.position ?? 0) >= Math.max(256, fold.items.length / 2)) keep.push(fold.view());
  }
}

/**
 * Returns what is to be seen after the first `position` records of a log; all of them, if it
 * is left out. It has no effects, and the same log and position give the same view.
 */
export function reduce(log: Log, position: number = log.length): View {
  const wanted = Math.max(0, Math.min(Math.trunc(position) || 0, log.length));
  const memory = memoryOf(log);
  const known = memory.recent.get(wanted);
  if (known !== undefined) return known;
  let view: View;
  if (wanted >= memory.head.position) {
    advance(log, memory.head, wanted, memory.kept);
    view = memory.head.view();
  } else {
    const fold = new Fold(memory.kept.findLast((each) => each.position <= wanted) ?? empty);
    advance(log, fold, wanted);
    view = fold.view();
  }
  memory.recent.set(wanted, view);
  for (const old of memory.recent.keys()) if (memory.recent.size > recentViews) memory.recent.delete(old);
  return view;
}

/** The key of the item that a record is about; undefined if it is about none. */
export function keyOf(event: LogEvent): string | undefined {
  const { type } = event;
  if (type.startsWith('TEXT_MESSAGE_')) return 't:' + text(event['messageId']);
  if (type.startsWith('TOOL_CALL_')) return 'c:' + text(event['toolCallId']);
  if (type.startsWith('REASONING_MESSAGE_') || type === 'REASONING_START' || type === 'REASONING_END') return 'r:' + text(event['messageId']);
  if (type.startsWith('ACTIVITY_')) return 'a:' + text(event['messageId']);
  return type.startsWith('SUBAGENT_') ? 'g:' + text(event['subagentRunId']) : undefined;
}

/** The item that a record is about. */
export const itemOf = (view: View, record: LogRecord): Item | undefined => {
  const key = keyOf(record.event);
  return view.items.find((item) => (key === undefined ? record.number !== 0 && item.first === record.number : item.key === key));
};
