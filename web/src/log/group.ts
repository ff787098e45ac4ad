// The log as it is read: runs, in them iterations, and in them messages, calls, changes of the
// state and remarks. The pieces of a text are one entry.

import { fields, list, number, text } from './json';
import { isEnd, isShown, type Log, type LogRecord } from './record';
import { keyOf } from './reduce';

export type EntryKind = 'run' | 'text' | 'reasoning' | 'call' | 'state' | 'snapshot' | 'activity' | 'step' | 'agent' | 'notice' | 'takeover' | 'other';

/** Records that are about one thing. */
export interface Entry {
  readonly kind: EntryKind;
  /** Unique in a log. */
  readonly id: string;
  /** The key of the item in a view, if there is one. */
  readonly key: string;
  readonly label: string;
  /** Indexes in the log, ascending. Calls that run at the same time have theirs between each other's. */
  readonly records: readonly number[];
  /** How many of them are pieces of a text or of arguments, and what they say together. */
  readonly deltas: number;
  readonly text: string;
  readonly at?: number;
  readonly end?: number;
}

/** One call of the model, and of the tools that it asked for. */
export interface Iteration {
  readonly id: string;
  readonly runId: string;
  /** From 0. After a takeover or a retry the same number comes again. */
  readonly number: number;
  readonly entries: readonly Entry[];
  /** How many records. */
  readonly count: number;
  readonly at?: number;
  readonly end?: number;
}

export interface RunGroup {
  readonly runId: string;
  readonly iterations: readonly Iteration[];
  readonly count: number;
  readonly at?: number;
  readonly end?: number;
  /** Whether its last record is there. */
  readonly ended: boolean;
}

type Writable<T> = { -readonly [name in keyof T]: T[name] extends readonly (infer E)[] ? E[] : T[name] };
type Open = Writable<Entry>;
interface OpenIteration extends Omit<Writable<Iteration>, 'entries'> {
  entries: Open[];
}
interface OpenRun extends Omit<Writable<RunGroup>, 'iterations'> {
  iterations: OpenIteration[];
}

const families: readonly (readonly [prefix: string, kind: EntryKind])[] = [
  ['TEXT_MESSAGE_', 'text'], ['REASONING_', 'reasoning'], ['TOOL_CALL_', 'call'], ['STATE_', 'state'], ['MESSAGES_', 'snapshot'],
  ['ACTIVITY_', 'activity'], ['STEP_', 'step'], ['SUBAGENT_', 'agent'], ['RUN_', 'run'],
];

/** The family of a record, by which a log is filtered. */
export function kindOf(record: LogRecord): EntryKind {
  const { type } = record.event;
  if (type === 'CUSTOM') return record.event['name'] === 'holdfast.takeover' ? 'takeover' : 'notice';
  return families.find(([prefix]) => type.startsWith(prefix))?.[1] ?? 'other';
}

const labels: Readonly<Record<string, string>> = { RUN_STARTED: 'Run started', RUN_FINISHED: 'Run finished', RUN_ERROR: 'Run failed', STATE_SNAPSHOT: 'State', STATE_DELTA: 'State changed', MESSAGES_SNAPSHOT: 'Messages' };

function labelOf(kind: EntryKind, { event }: LogRecord): string {
  switch (kind) {
    case 'text':
      return text(event['role']) || 'assistant';
    case 'call':
      return text(event['toolCallName']) || 'tool';
    case 'notice':
    case 'takeover':
      return text(event['name']);
    case 'agent':
      return text(event['name']);
    case 'step':
      return text(event['stepName']);
    case 'activity':
      return text(event['activityType']);
    case 'snapshot':
      return `${labels['MESSAGES_SNAPSHOT']} (${list(event['messages']).length})`;
    default:
      return labels[event.type] ?? event.type;
  }
}

/** Begins another answer of the model: after the results of tools, that is the next iteration. */
const begins = new Set(['TEXT_MESSAGE_START', 'REASONING_START', 'REASONING_MESSAGE_START', 'TOOL_CALL_START', 'TEXT_MESSAGE_CHUNK', 'REASONING_MESSAGE_CHUNK', 'TOOL_CALL_CHUNK']);

class Grouping {
  readonly runs: OpenRun[] = [];
  #entries = new Map<string, Open>();
  /** Results have come, so what the model says next is another iteration. */
  #results = false;
  /** The number of the next iteration, if a notice has said it. */
  #next: number | undefined;

  take(record: LogRecord, index: number): void {
    if (isShown(record)) return;
    const { event, runId } = record;
    let run = this.runs.at(-1);
    if (run === undefined || run.runId !== runId) {
      run = { runId, iterations: [], count: 0, ended: false };
      this.runs.push(run);
      this.#entries = new Map();
      this.#results = false;
      this.#next = 0;
    }
    let iteration = run.iterations.at(-1);
    if (iteration === undefined || (begins.has(event.type) && (this.#results || this.#next !== undefined) && iteration.entries.some((entry) => entry.kind !== 'run' && entry.kind !== 'snapshot' && entry.kind !== 'state'))) {
      iteration = this.#iteration(run, iteration);
    }
    if (event.type === 'TOOL_CALL_RESULT') this.#results = true;
    if (event.type === 'CUSTOM') this.#next = number(fields(event['value'])['iteration']) ?? this.#next;
    this.#add(iteration, record, index);
    run.count++;
    if (isEnd(event)) run.ended = true;
    iteration.count++;
    for (const each of [run, iteration]) stretch(each, record.at);
  }

  #iteration(run: OpenRun, last: OpenIteration | undefined): OpenIteration {
    const at = this.#next ?? (last === undefined ? 0 : last.number + 1);
    const fresh: OpenIteration = { id: `${run.runId}/${run.iterations.length}`, runId: run.runId, number: at, entries: [], count: 0 };
    run.iterations.push(fresh);
    this.#results = false;
    this.#next = undefined;
    return fresh;
  }

  #add(iteration: OpenIteration, record: LogRecord, index: number): void {
    const kind = kindOf(record);
    const key = kind === 'run' || kind === 'step' ? '' : (keyOf(record.event) ?? '');
    const known = key === '' ? undefined : this.#entries.get(key);
    // Related records stay together, but not across iterations: an answer is given once.
    const entry = known ?? { kind, id: `${iteration.id}/${index}`, key, label: labelOf(kind, record), records: [], deltas: 0, text: '' };
    if (known === undefined) {
      iteration.entries.push(entry);
      if (key !== '') this.#entries.set(key, entry);
    }
    entry.records.push(index);
    const delta = record.event['delta'];
    if (typeof delta === 'string') {
      entry.deltas++;
      entry.text += delta;
    }
    stretch(entry, record.at);
  }
}

function stretch(what: { at?: number; end?: number }, at: number | undefined): void {
  if (at === undefined) return;
  what.at ??= at;
  what.end = Math.max(what.end ?? at, at);
}

const memory = new WeakMap<Log, readonly RunGroup[]>();

/** Returns the groups of a log. The same log has the same groups. */
export function group(log: Log): readonly RunGroup[] {
  const known = memory.get(log);
  if (known !== undefined) return known;
  const grouping = new Grouping();
  for (let i = 0; i < log.length; i++) grouping.take(log.at(i) as LogRecord, i);
  memory.set(log, grouping.runs);
  return grouping.runs;
}
