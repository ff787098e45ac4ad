// A run in time: who was waited for when. Spans come from the records, which say when things
// began and ended, and from the checkpoints, which say when something was committed.

import { fields, number } from './json';
import { isEnd, type Log, type LogRecord } from './record';
import { reduce } from './reduce';
import type { SeamItem, View } from './view';

/** waiting: for the model's first word. model: it answers. tool: a call runs. person: a question is open, or a call waits to be finished from outside. takeover: nobody ran it. */
export type SpanKind = 'waiting' | 'model' | 'tool' | 'person' | 'takeover';

export interface Span {
  readonly kind: SpanKind;
  readonly id: string;
  readonly label: string;
  /** Milliseconds of the server's clock. */
  readonly at: number;
  readonly end: number;
  /** It has not ended; `end` is the last time that is known. */
  readonly open: boolean;
  /** Spans that overlap have different lanes, from 0; each kind has lanes of its own. */
  readonly lane: number;
  /** The item in a view, and the record that it begins with; '' and 0 if there is none. */
  readonly key: string;
  readonly record: number;
  readonly failed: boolean;
}

/** A moment. */
export interface Moment {
  readonly kind: 'checkpoint';
  readonly id: string;
  readonly at: number;
  readonly label: string;
}

export interface Waterfall {
  readonly at: number;
  readonly end: number;
  readonly spans: readonly Span[];
  readonly moments: readonly Moment[];
}

/** A checkpoint, as GET /threads/{thread}/checkpoints has it. */
export interface Taken {
  readonly id: string;
  readonly createdAt: string;
  readonly runId: string;
  readonly iteration: number;
  readonly metadata: { readonly source: string; readonly label?: string };
}

/** A call, as GET /threads/{thread}/calls has it, if it is known when exactly it ran. */
export interface Ran {
  readonly toolCallId: string;
  readonly startedAt?: string;
  readonly endedAt?: string;
}

type Bare = Omit<Span, 'lane'>;

const startsAnswer = new Set(['TEXT_MESSAGE_START', 'REASONING_START', 'REASONING_MESSAGE_START', 'TOOL_CALL_START', 'TEXT_MESSAGE_CHUNK', 'REASONING_MESSAGE_CHUNK', 'TOOL_CALL_CHUNK']);
const partOfAnswer = (type: string): boolean => type !== 'TOOL_CALL_RESULT' && /^(TEXT_MESSAGE|REASONING|TOOL_CALL)_/.test(type);

/** Spans of the model: it is waited for from the start, or the last result, to its first word. */
function modelSpans(records: readonly LogRecord[]): Bare[] {
  const spans: Bare[] = [];
  let since: { at: number; record: number } | undefined;
  let answer: { at: number; end: number; record: number } | undefined;
  const close = (open: boolean): void => {
    if (answer !== undefined) spans.push({ kind: 'model', id: `model:${answer.record}`, label: 'Model', at: answer.at, end: answer.end, open, key: '', record: answer.record, failed: false });
    answer = undefined;
  };
  for (const { event, at, number: record } of records) {
    if (partOfAnswer(event.type)) {
      if (answer === undefined && at !== undefined && startsAnswer.has(event.type)) {
        if (since !== undefined) spans.push({ kind: 'waiting', id: `waiting:${since.record}`, label: 'Waiting for the model', at: since.at, end: at, open: false, key: '', record: since.record, failed: false });
        since = undefined;
        answer = { at, end: at, record };
      }
      if (answer !== undefined && at !== undefined) answer.end = at;
      continue;
    }
    if (event.type === 'RUN_STARTED' || event.type === 'TOOL_CALL_RESULT' || event.type === 'CUSTOM') {
      // Pieces of an answer say no times. One that a death cut off was coming until its last record.
      const outage = number(fields(event['value'])['outageMs']);
      if (answer !== undefined && at !== undefined && outage !== undefined && event['name'] === 'holdfast.takeover') answer.end = Math.max(answer.end, at - outage);
      close(false);
      if (at !== undefined) since = { at, record };
    }
    if (isEnd(event)) {
      close(false);
      since = undefined;
    }
  }
  close(true);
  return spans;
}

function toolSpans(view: View, runId: string, last: number, ran: readonly Ran[]): Bare[] {
  return view.items.flatMap((item): Bare[] => {
    if (item.kind !== 'call' || item.runId !== runId) return [];
    const known = ran.find((each) => each.toolCallId === item.id);
    const at = known?.startedAt === undefined ? item.at : Date.parse(known.startedAt);
    if (at === undefined || item.status === 'pending') return [];
    const open = item.status === 'running';
    const ended = known?.endedAt === undefined ? item.end : Date.parse(known.endedAt);
    if (item.status === 'waiting') return [{ kind: 'person', id: 'person:' + item.id, label: item.name, at, end: Math.max(at, last), open: true, key: item.key, record: item.first, failed: false }];
    return [{ kind: 'tool', id: 'tool:' + item.id, label: item.name, at, end: Math.max(at, ended ?? last), open, key: item.key, record: item.first, failed: item.status === 'failed' }];
  });
}

/** A run that ended with questions waits for a person until the next one starts. */
function personSpans(view: View, now: View, runId: string): Bare[] {
  const at = now.runs.findIndex((run) => run.id === runId);
  const run = now.runs[at];
  const next = now.runs[at + 1];
  const asked = view.items.filter((item) => item.kind === 'question' && item.runId === runId);
  const first = asked[0];
  if (run?.end === undefined || first === undefined || next?.at === undefined) return [];
  return [{ kind: 'person', id: 'person:' + runId, label: 'Waiting for an answer', at: run.end, end: Math.max(run.end, next.at), open: false, key: first.key, record: first.first, failed: false }];
}

function takeoverSpans(view: View, runId: string): Bare[] {
  const seams = view.items.filter((item): item is SeamItem => item.kind === 'seam' && item.runId === runId);
  return seams.flatMap((seam) => {
    if (seam.at === undefined) return [];
    return [{ kind: 'takeover' as const, id: 'takeover:' + seam.key, label: seam.reason === 'handed_over' ? 'Handed over' : 'No record until the takeover', at: seam.at - (seam.outageMs ?? 0), end: seam.at, open: false, key: seam.key, record: seam.first, failed: seam.reason !== 'handed_over' }];
  });
}

/** Gives spans of a kind that overlap lanes of their own. */
function inLanes(spans: readonly Bare[]): Span[] {
  const ends = new Map<SpanKind, number[]>();
  return [...spans].sort((a, b) => a.at - b.at || a.record - b.record).map((span) => {
    const lanes = ends.get(span.kind) ?? [];
    ends.set(span.kind, lanes);
    const free = lanes.findIndex((end) => end <= span.at);
    const lane = free < 0 ? lanes.length : free;
    lanes[lane] = span.end;
    return { ...span, lane };
  });
}

function momentsOf(checkpoints: readonly Taken[], runId: string): Moment[] {
  return checkpoints.filter((each) => each.runId === runId).map(({ id, createdAt, iteration, metadata }) => {
    const at = Date.parse(createdAt);
    const label = metadata.label ?? (metadata.source === 'input' ? 'Run accepted' : metadata.source === 'loop' ? `Iteration ${iteration}` : metadata.source);
    return { kind: 'checkpoint' as const, id, at, label };
  }).filter((moment) => Number.isFinite(moment.at)).sort((a, b) => a.at - b.at);
}

/** Returns a run in time; undefined if the log says nothing of when it was. */
export function waterfall(log: Log, runId: string, checkpoints: readonly Taken[] = [], ran: readonly Ran[] = []): Waterfall | undefined {
  const all = log.slice();
  const records = all.filter((record) => record.runId === runId && record.number !== 0);
  const times = records.map((record) => record.at).filter((at) => at !== undefined);
  const [first, last] = [times[0], times.at(-1)];
  if (first === undefined || last === undefined) return undefined;
  // As it was when the run ended: later ones may have left what it did.
  const view = reduce(log, all.findLastIndex((record) => record.runId === runId && record.number !== 0) + 1);
  const spans = inLanes([...modelSpans(records), ...toolSpans(view, runId, last, ran), ...personSpans(view, reduce(log), runId), ...takeoverSpans(view, runId)]);
  const moments = momentsOf(checkpoints, runId);
  const at = Math.min(first, ...spans.map((span) => span.at), ...moments.map((moment) => moment.at));
  const end = Math.max(last, ...spans.map((span) => span.end), ...moments.map((moment) => moment.at));
  return { at, end, spans, moments };
}
