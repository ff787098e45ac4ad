// Where a conversation has gone on in several ways: which there are, and which one is shown.

import type { Fold } from './fold';
import { fields, text } from './json';
import type { Branch, Item, Version } from './view';

const isMessage = (item: Item): boolean => item.kind === 'text' || item.kind === 'reasoning' || item.kind === 'call';

/** Takes `holdfast.branched`: what was shown before the run began is left for something else. */
export function branched(fold: Fold, value: unknown): void {
  const { parentMessageId, leftCheckpointId } = fields(value);
  const parentId = text(parentMessageId);
  const { items, number } = fold.inner.before;
  const now = new Set(fold.items.map((item) => item.key));
  const then = new Set(items.map((item) => item.key));
  const left = items.find((item) => isMessage(item) && !now.has(item.key));
  const next = fold.items.find((item) => isMessage(item) && !then.has(item.key));
  const old = fold.branches.find((branch) => branch.parentId === parentId);
  const leftNow: Version = { key: left?.key ?? '', checkpointId: text(leftCheckpointId), number };
  const known = old?.versions ?? [];
  const versions = known.some((v) => v.key === leftNow.key) ? known.map((v) => (v.key === leftNow.key ? leftNow : v)) : [...known, leftNow];
  const entry: Version = { key: next?.key ?? '', checkpointId: '', number: 0 };
  const again = versions.findIndex((v) => v.key === entry.key && v.key !== '');
  const all = again < 0 ? [...versions, entry] : versions.map((v, i) => (i === again ? entry : v));
  const branch: Branch = { parentId, versions: all, shown: again < 0 ? all.length - 1 : again };
  fold.branches = old === undefined ? [...fold.branches, branch] : fold.branches.map((each) => (each === old ? branch : each));
}

/** The first item of a version that had none: `item` has just been added. Only what is shown gets items: a version that was left before the log begins never has a first one. */
export function firstOfVersion(fold: Fold, item: Item): void {
  const begins = ({ versions, shown }: Branch): boolean => versions[shown]?.key === '';
  if (!isMessage(item) || !fold.branches.some(begins)) return;
  fold.branches = fold.branches.map((branch) => (begins(branch) ? { ...branch, versions: branch.versions.map((v, i) => (i === branch.shown ? { ...v, key: item.key } : v)) } : branch));
}

/** Finds out which versions are shown, after the messages were replaced. */
export function readBranches(fold: Fold): void {
  if (fold.branches.length === 0) return;
  fold.branches = fold.branches.map((branch) => {
    const shown = branch.versions.findLastIndex((v) => v.key !== '' && fold.find(v.key) !== undefined);
    return shown < 0 || shown === branch.shown ? branch : { ...branch, shown };
  });
}
