// Events of what grows: texts, reasoning and calls, in whole events and in chunks.

import { firstOfVersion } from './branches';
import type { Fold } from './fold';
import { text, textOr } from './json';
import { contentOf, newCall, outcomeOf } from './messages';
import type { LogEvent } from './record';
import { catchUp, saysAnew } from './seam';
import type { Item, ItemBase } from './view';

export type Handler = (fold: Fold, event: LogEvent) => void;

type Lane = 'text' | 'call' | 'reasoning';

const keyOf: Record<Lane, string> = { text: 't:', call: 'c:', reasoning: 'r:' };

function base(fold: Fold, key: string, id: string, event: LogEvent): ItemBase {
  const subagentRunId = textOr(event['subagentRunId']);
  return { ...fold.base(key, id), ...(subagentRunId === undefined ? {} : { subagentRunId }) };
}

/** Adds what has just begun. */
function begin(fold: Fold, item: Item): void {
  fold.put(item);
  fold.set({ beginning: false });
  firstOfVersion(fold, item);
  saysAnew(fold, item);
}

const id = (event: LogEvent): string => text(event['messageId']);

/** When it ended, if the event says so. */
const ended = (fold: Fold): { open: false; end?: number } => (fold.record.at === undefined ? { open: false } : { open: false, end: fold.record.at });

function textStart(fold: Fold, event: LogEvent): void {
  const key = 't:' + id(event);
  if (fold.get(key, 'text') !== undefined) return fold.change(key, 'text', { open: true });
  begin(fold, { ...base(fold, key, id(event), event), kind: 'text', role: textOr(event['role']) ?? 'assistant', text: '', parts: [], seams: [], imported: false });
}

function textContent(fold: Fold, event: LogEvent): void {
  const key = 't:' + id(event);
  if (fold.get(key, 'text') === undefined) textStart(fold, event);
  fold.change(key, 'text', { text: (fold.get(key, 'text')?.text ?? '') + text(event['delta']) });
  catchUp(fold, key, false);
}

function textEnd(fold: Fold, event: LogEvent): void {
  fold.change('t:' + id(event), 'text', ended(fold));
  catchUp(fold, 't:' + id(event), true);
}

function reasoningStart(fold: Fold, event: LogEvent): void {
  const key = 'r:' + id(event);
  if (fold.get(key, 'reasoning') !== undefined) return fold.change(key, 'reasoning', { open: true, hidden: false });
  begin(fold, { ...base(fold, key, id(event), event), kind: 'reasoning', text: '', hidden: false, seams: [] });
}

function reasoningContent(fold: Fold, event: LogEvent): void {
  const key = 'r:' + id(event);
  if (fold.get(key, 'reasoning') === undefined) reasoningStart(fold, event);
  fold.change(key, 'reasoning', { text: (fold.get(key, 'reasoning')?.text ?? '') + text(event['delta']) });
  catchUp(fold, key, false);
}

function reasoningEnd(fold: Fold, event: LogEvent): void {
  fold.change('r:' + id(event), 'reasoning', ended(fold));
  catchUp(fold, 'r:' + id(event), true);
}

function encrypted(fold: Fold, event: LogEvent): void {
  const entity = text(event['entityId']);
  const key = 'r:' + entity;
  if (event['subtype'] !== 'message' || fold.find('t:' + entity) !== undefined || fold.find(key) !== undefined) return;
  begin(fold, { ...base(fold, key, entity, event), open: false, kind: 'reasoning', text: '', hidden: true, seams: [] });
}

const call = (event: LogEvent): string => text(event['toolCallId']);

function callStart(fold: Fold, event: LogEvent): void {
  const key = 'c:' + call(event);
  const name = textOr(event['toolCallName']) ?? 'tool';
  const parentId = text(event['parentMessageId']);
  if (fold.get(key, 'call') !== undefined) return fold.change(key, 'call', { open: true, status: 'pending', name });
  begin(fold, { ...newCall(base(fold, key, call(event), event), call(event)), name, parentId });
}

function callArgs(fold: Fold, event: LogEvent): void {
  const key = 'c:' + call(event);
  if (fold.get(key, 'call') === undefined) callStart(fold, event);
  fold.change(key, 'call', { args: (fold.get(key, 'call')?.args ?? '') + text(event['delta']) });
}

// A call runs from when it has its arguments to its result.
function callEnd(fold: Fold, event: LogEvent): void {
  const { at } = fold.record;
  fold.change('c:' + call(event), 'call', { open: false, status: 'running', ...(at === undefined ? {} : { at }) });
}

function callResult(fold: Fold, event: LogEvent): void {
  const key = 'c:' + call(event);
  if (fold.get(key, 'call') === undefined) begin(fold, newCall(base(fold, key, call(event), event), call(event)));
  const content = contentOf(event['content']);
  fold.change(key, 'call', { ...ended(fold), ...outcomeOf(event), result: content.text, parts: content.parts, resultId: id(event), ...(content.parts.length === 0 ? {} : { rawResult: event['content'] }) });
}

function closeChunk(fold: Fold, lane: Lane): void {
  const open = fold.inner.chunks[lane];
  if (open === '') return;
  fold.set({ chunks: { ...fold.inner.chunks, [lane]: '' } });
  const key = keyOf[lane] + open;
  if (lane === 'call') fold.change(key, 'call', { open: false, status: 'running', ...(fold.record.at === undefined ? {} : { at: fold.record.at }) });
  else fold.change(key, lane, ended(fold));
  if (lane !== 'call') catchUp(fold, key, true);
}

/** An item that CHUNK events have opened ends with the next other event of its kind. */
export function closeChunks(fold: Fold, type: string): void {
  const { chunks } = fold.inner;
  if (chunks.text === '' && chunks.call === '' && chunks.reasoning === '') return;
  if (type.endsWith('_CHUNK') || type === 'REASONING_ENCRYPTED_VALUE') return;
  const all = type.startsWith('RUN_') || type === 'MESSAGES_SNAPSHOT' || type === 'CUSTOM';
  if (all || type.startsWith('TEXT_MESSAGE_')) closeChunk(fold, 'text');
  if (all || type.startsWith('TOOL_CALL_')) closeChunk(fold, 'call');
  if (all || type.startsWith('REASONING_')) closeChunk(fold, 'reasoning');
}

const chunk = (lane: Lane, idName: 'messageId' | 'toolCallId', start: Handler, content: Handler): Handler => (fold, event) => {
  const open = fold.inner.chunks[lane];
  const item = textOr(event[idName]) ?? open;
  if (item === '') return; // a first chunk must name its item
  const named = { ...event, [idName]: item };
  if (item !== open) {
    closeChunk(fold, lane);
    start(fold, named);
    fold.set({ chunks: { ...fold.inner.chunks, [lane]: item } });
  }
  if (text(event['delta']) !== '') content(fold, named);
};

/** A START of a known id opens it again: what follows is appended. */
export const streams: Readonly<Record<string, Handler>> = {
  TEXT_MESSAGE_START: textStart,
  TEXT_MESSAGE_CONTENT: textContent,
  TEXT_MESSAGE_END: textEnd,
  TEXT_MESSAGE_CHUNK: chunk('text', 'messageId', textStart, textContent),
  TOOL_CALL_START: callStart,
  TOOL_CALL_ARGS: callArgs,
  TOOL_CALL_END: callEnd,
  TOOL_CALL_RESULT: callResult,
  TOOL_CALL_CHUNK: chunk('call', 'toolCallId', callStart, callArgs),
  REASONING_MESSAGE_START: reasoningStart,
  REASONING_MESSAGE_CONTENT: reasoningContent,
  REASONING_MESSAGE_END: reasoningEnd,
  REASONING_MESSAGE_CHUNK: chunk('reasoning', 'messageId', reasoningStart, reasoningContent),
  REASONING_ENCRYPTED_VALUE: encrypted,
};
