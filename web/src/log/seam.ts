// The seam: where a process died in the middle of an answer and another one went on. The new
// process asks the model again, so mostly the new text begins with what was shown before the
// death; then the seam stands in the text, where the old process had come to. Where the
// new text is another one, the seam stands before it.

import type { Fold } from './fold';
import { fields, number, text } from './json';
import type { Cut, Item, ReasoningItem, SeamItem, TextItem } from './view';

/** Takes `holdfast.takeover`. The snapshot that follows tells which text was given up. */
export function takeover(fold: Fold, value: unknown): void {
  const it = fields(value);
  const lastAt = fold.inner.at;
  const { at } = fold.record;
  const said = number(it['outageMs']);
  const outageMs = said ?? (lastAt === undefined || at === undefined ? undefined : Math.max(0, at - lastAt));
  const before = fold.runs.find((run) => run.id === fold.runId);
  const key = `x:${fold.record.number || `${fold.runId}:${String(it['epoch'])}`}`;
  const seam: SeamItem = {
    ...fold.base(key, ''), open: false, kind: 'seam', reason: text(it['reason']), epoch: number(it['epoch']) ?? 0, iteration: number(it['iteration']) ?? 0,
    from: text(it['from']) || (before?.process ?? ''), process: text(it['process']), target: '', place: 'before', offset: 0,
    ...(outageMs === undefined ? {} : { outageMs }), fromRevision: text(it['fromRevision']), toRevision: text(it['toRevision']),
  };
  fold.put(seam);
  fold.run({ takeovers: (before?.takeovers ?? 0) + 1, ...(seam.process === '' ? {} : { process: seam.process }) });
  fold.set({ taken: key });
}

function cutOf(item: Item): Cut | undefined {
  if (item.kind === 'text' && item.role === 'assistant') return { kind: 'text', key: item.key, text: item.text };
  if (item.kind === 'reasoning') return { kind: 'reasoning', key: item.key, text: item.text };
  return item.kind === 'call' ? { kind: 'call', key: item.key, text: item.args } : undefined;
}

/** After the snapshot that follows a takeover: what of the items before it is gone? */
export function giveUp(fold: Fold, before: readonly Item[]): void {
  const seam = fold.inner.taken;
  const gone = before.filter((item) => fold.find(item.key) === undefined).map(cutOf).filter((cut) => cut !== undefined);
  const cut = gone.findLast((c) => c.kind === 'text' && c.text !== '') ?? gone.findLast((c) => c.kind === 'reasoning' && c.text !== '') ?? gone.at(-1);
  if (cut !== undefined) fold.change(seam, 'seam', { cut });
  // A second death, before the answer had caught up with the first: that one is still to be placed.
  const earlier = fold.items.filter((item): item is SeamItem => item.kind === 'seam' && item.cut !== undefined && gone.some((c) => c.key === item.target));
  for (const item of earlier) fold.change(item.key, 'seam', { target: '', place: 'before', offset: 0 });
  const open = [...earlier.map((item) => ({ seam: item.key, ...(item.cut === undefined ? {} : { cut: item.cut }) })), ...fold.inner.cuts];
  const unique = open.filter((each, i) => open.findIndex((other) => other.seam === each.seam) === i);
  fold.set({ taken: '', cuts: [...unique, cut === undefined ? { seam } : { seam, cut }], catching: [] });
}

/** A new item begins: it may be what a dead process was saying. */
export function saysAnew(fold: Fold, item: Item): void {
  if (fold.inner.cuts.length === 0 || (item.kind !== 'text' && item.kind !== 'reasoning' && item.kind !== 'call')) return;
  const { at } = fold.record;
  const waiting = [];
  const catching = [...fold.inner.catching];
  for (const pending of fold.inner.cuts) {
    const seam = fold.get(pending.seam, 'seam');
    if (seam === undefined) continue;
    const gapMs = at === undefined || seam.at === undefined || seam.outageMs === undefined ? undefined : Math.max(0, at - seam.at) + seam.outageMs;
    const same = pending.cut === undefined || pending.cut.kind === item.kind;
    const catches = same && pending.cut !== undefined && pending.cut.text !== '' && item.kind !== 'call';
    if (same || seam.target === '') fold.change(seam.key, 'seam', { target: item.key, place: catches ? 'catching_up' : 'before', offset: 0, ...(gapMs === undefined ? {} : { gapMs }) });
    if (same && seam.target !== '') fold.putBefore(item.key, fold.get(seam.key, 'seam') ?? seam);
    if (catches) catching.push(pending);
    // An answer that was cut off in its text may think again first.
    else if (!same && item.kind === 'reasoning') waiting.push(pending);
  }
  fold.set({ cuts: waiting, catching });
}

function place(fold: Fold, seam: string, target: TextItem | ReasoningItem, offset: number): void {
  if (offset < 0) return fold.change(seam, 'seam', { place: 'before', offset: 0 });
  fold.change(seam, 'seam', { place: 'inside', offset });
  const seams = [...target.seams.filter((mark) => mark.seam !== seam), { seam, offset }].sort((a, b) => a.offset - b.offset);
  fold.change(target.key, target.kind, { seams });
}

/** Text has grown, or has ended: does it repeat what was shown? */
export function catchUp(fold: Fold, key: string, ended: boolean): void {
  if (fold.inner.catching.length === 0) return;
  const left = fold.inner.catching.filter(({ seam, cut }) => {
    const target = fold.get(key, 'text') ?? fold.get(key, 'reasoning');
    if (target === undefined || cut === undefined || fold.get(seam, 'seam')?.target !== key) return true;
    if (target.text.length >= cut.text.length) place(fold, seam, target, target.text.startsWith(cut.text) ? cut.text.length : -1);
    else if (ended || !cut.text.startsWith(target.text)) place(fold, seam, target, -1);
    else return true;
    return false;
  });
  if (left.length !== fold.inner.catching.length) fold.set({ catching: left });
}
