// AG-UI's messages as items, and snapshots of them. A snapshot is the truth about messages: one
// that is missing was taken back.

import { Fold } from './fold';
import { fields, holdfast, isFields, list, number, text, textOr, type Fields } from './json';
import { readBranches } from './branches';
import type { CallItem, Item, ItemBase, Part } from './view';

/** The visible part of a URL: only what cannot act, and only what was given. */
const showable = /^(?:https:\/\/|data:(?:image|audio|video)\/[\w.+-]+;base64,)/i;

function part(value: unknown): Part {
  const it = fields(value);
  const source = fields(it['source']);
  const mimeType = text(source['mimeType']) || text(it['mimeType']);
  const raw = text(source['value']) || text(source['data']) || text(it['data']) || text(it['url']);
  const url = source['type'] === 'url' || /^[a-z]+:/i.test(raw) ? raw : raw && `data:${mimeType};base64,${raw}`;
  return { type: text(it['type']) || 'unknown', mimeType, url: showable.test(url) ? url : '', name: text(it['filename']) || text(it['name']) };
}

/** Content is a text or a list of parts. */
export function contentOf(content: unknown): { text: string; parts: readonly Part[] } {
  if (!Array.isArray(content)) return { text: text(content), parts: [] };
  const parts = content as readonly unknown[];
  return {
    text: parts.filter((p) => fields(p)['type'] === 'text').map((p) => text(fields(p)['text'])).join('\n'),
    parts: parts.filter((p) => fields(p)['type'] !== 'text').map(part),
  };
}

/** The server's account of how a call ended, in its result. */
export function outcomeOf(message: Fields): Pick<CallItem, 'status' | 'code' | 'notRun' | 'imported'> & Partial<Pick<CallItem, 'effect' | 'idempotencyKey' | 'attempts'>> {
  const own = holdfast(message);
  const failed = typeof message['error'] === 'string' || own['failed'] === true;
  const effect = textOr(own['effect']);
  const idempotencyKey = textOr(own['idempotencyKey']);
  const attempts = number(own['attempts']);
  return {
    status: failed ? 'failed' : 'done', code: text(own['code']), notRun: own['notRun'] === true, imported: own['imported'] === true,
    ...(effect === undefined ? {} : { effect }), ...(idempotencyKey === undefined ? {} : { idempotencyKey }), ...(attempts === undefined ? {} : { attempts }),
  };
}

/** A call of which nothing is known but its id. */
export const newCall = (base: Omit<ItemBase, 'id'>, id: string): CallItem => ({
  ...base, id, kind: 'call', name: 'tool', args: '', status: 'pending', result: '', parts: [], parentId: '', resultId: '', code: '', notRun: false, edited: false, imported: false,
});

/** Snapshots come before the items that they are made of, so their items begin nowhere. */
function unseen(fold: Fold, key: string, id: string, message: Fields): ItemBase {
  const old = fold.find(key);
  const subagentRunId = textOr(message['subagentRunId']);
  if (old === undefined) return { key, id, runId: '', first: 0, last: 0, open: false, ...(subagentRunId === undefined ? {} : { subagentRunId }) };
  const { runId, first, last, at, end } = old;
  return { key, id, runId, first, last, open: false, ...(at === undefined ? {} : { at }), ...(end === undefined ? {} : { end }), ...(subagentRunId === undefined ? {} : { subagentRunId }) };
}

/** Items whose content is the same stay the same objects. */
function keep<T extends Item>(old: Item | undefined, item: T, same: (old: T) => boolean): Item {
  return old !== undefined && old.kind === item.kind && !old.open && same(old as T) ? old : item;
}

/** The server's mark of an answer in whose middle the run has failed. */
const failedOf = (message: Fields): { failed?: true } => (holdfast(message)['failed'] === true ? { failed: true } : {});

class Snapshot {
  readonly items: Item[] = [];
  readonly #at = new Map<string, number>();
  readonly #fold: Fold;

  constructor(fold: Fold) {
    this.#fold = fold;
  }

  has = (key: string): boolean => this.#at.has(key);

  #push(item: Item): void {
    const at = this.#at.get(item.key);
    if (at !== undefined) this.items[at] = item;
    else this.#at.set(item.key, this.items.push(item) - 1);
  }

  take(value: unknown): void {
    if (!isFields(value)) return;
    const id = text(value['id']);
    switch (value['role']) {
      case 'reasoning':
        return this.#reasoning(id, value);
      case 'tool':
        return this.#result(id, value);
      case 'activity':
        return this.#activity(id, value);
      default:
        return this.#text(id, value);
    }
  }

  #reasoning(id: string, message: Fields): void {
    const key = 'r:' + id;
    const old = this.#fold.get(key, 'reasoning');
    const content = text(message['content']);
    this.#push(keep(old, { ...unseen(this.#fold, key, id, message), kind: 'reasoning', text: content, hidden: content === '', seams: old?.text === content ? old.seams : [], ...failedOf(message) }, (o) => o.text === content && o.failed === failedOf(message).failed));
  }

  #result(id: string, message: Fields): void {
    const callId = text(message['toolCallId']);
    const key = 'c:' + callId;
    const at = this.#at.get(key);
    const call = at === undefined ? newCall(unseen(this.#fold, key, callId, message), callId) : (this.items[at] as CallItem);
    const content = contentOf(message['content']);
    const done: CallItem = { ...call, ...outcomeOf(message), result: content.text || text(message['error']), parts: content.parts, resultId: id, ...(content.parts.length === 0 ? {} : { rawResult: message['content'] }) };
    this.#push(keep(this.#fold.find(key), done, (o) => o.result === done.result && o.args === done.args && o.status === done.status && o.parts.length === done.parts.length));
  }

  #activity(id: string, message: Fields): void {
    const key = 'a:' + id;
    const content = message['content'];
    // Of an image that was left out of a snapshot for its size, what is shown stays.
    const old = fields(content)['leftOut'] === undefined ? undefined : this.#fold.get(key, 'activity');
    const kept = fields(old?.content)['url'] === undefined ? content : old?.content;
    this.#push({ ...unseen(this.#fold, key, id, message), kind: 'activity', name: text(message['activityType']), content: kept });
  }

  #text(id: string, message: Fields): void {
    const content = contentOf(message['content']);
    const calls = list(message['toolCalls']);
    const own = holdfast(message);
    const key = 't:' + id;
    if (content.text !== '' || content.parts.length > 0 || calls.length === 0) {
      const old = this.#fold.get(key, 'text');
      const item = { ...unseen(this.#fold, key, id, message), kind: 'text', role: text(message['role']) || 'assistant', text: content.text, parts: content.parts, seams: old?.text === content.text ? old.seams : [], imported: own['imported'] === true, ...failedOf(message), ...(content.parts.length === 0 ? {} : { raw: message['content'] }) } as const;
      this.#push(keep(old, item, (o) => o.text === item.text && o.role === item.role && o.parts.length === item.parts.length && o.imported === item.imported && o.failed === failedOf(message).failed));
    }
    for (const value of calls) this.#call(id, fields(value), own['edited'] === true);
  }

  #call(parentId: string, call: Fields, edited: boolean): void {
    const id = text(call['id']);
    const key = 'c:' + id;
    const made = fields(call['function']);
    const fresh = newCall(unseen(this.#fold, key, id, call), id);
    const old = this.#fold.get(key, 'call');
    const known = old === undefined ? {} : { effect: old.effect, idempotencyKey: old.idempotencyKey, attempts: old.attempts };
    const item = { ...fresh, ...known, name: text(made['name']) || 'tool', args: text(made['arguments']), status: 'running', parentId, edited } as CallItem;
    // Without a result it is the same object only if it had none before.
    this.#push(keep(old, item, (o) => o.args === item.args && o.result === '' && o.status === 'running' && o.edited === edited));
  }
}

/** Whether an item is what a model has made besides text. */
export const made = (item: Item): boolean => item.kind === 'activity' && /^holdfast\.(image|audio|video|document)$/.test(item.name);

const isMessage = (item: Item): boolean => item.kind === 'text' || item.kind === 'reasoning' || item.kind === 'call' || made(item);

/**
 * Puts the messages of a snapshot in the place of those that are shown. Remarks, steps,
 * subagents and activities that the snapshot does not know stay after the last remaining
 * message that was before them. For the sake of stock clients the server may send an empty
 * snapshot before the full one; the two are treated as one.
 */
export function snapshot(fold: Fold, messages: unknown): void {
  if (!Array.isArray(messages)) return;
  if (messages.length === 0) {
    fold.set({ aside: [...(fold.inner.aside ?? []), ...fold.items] });
    return fold.reset([]);
  }
  if (fold.inner.aside !== undefined) {
    fold.reset([...fold.inner.aside, ...fold.items]);
    const { aside: _, ...rest } = fold.inner;
    fold.inner = rest;
  }
  const fresh = new Snapshot(fold);
  for (const message of messages) fresh.take(message);
  const behind = new Map<string, Item[]>();
  let anchor = '';
  let left = false;
  for (const old of fold.items) {
    if (fresh.has(old.key)) {
      anchor = old.key;
      left = false;
    } else if (isMessage(old)) left = true;
    // A run that begins with another history has left these behind, with what they were about.
    else if (!left || !fold.inner.beginning) behind.set(anchor, [...(behind.get(anchor) ?? []), old]);
  }
  const items = [...(behind.get('') ?? [])];
  for (const item of fresh.items) items.push(item, ...(behind.get(item.key) ?? []));
  fold.reset(items);
  readBranches(fold);
}

/** Adds messages that a run was started with, if they are new. */
export function addMessages(fold: Fold, messages: unknown): void {
  const fresh = new Snapshot(fold);
  for (const message of list(messages)) fresh.take(message);
  for (const item of fresh.items) if (fold.find(item.key) === undefined) fold.put({ ...item, runId: fold.runId, first: fold.record.number, last: fold.record.number });
}
