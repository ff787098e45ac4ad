// How a thread stands where its log does not say it: after going back, after a checkpoint that
// was taken by hand, in a fork, after a clean-up.

import { isFields } from './json';
import { equal } from './patch';
import type { Log, LogRecord } from './record';
import { reduce } from './reduce';
import type { Item, View } from './view';

const said = (item: Item): readonly unknown[] => {
  switch (item.kind) {
    case 'text':
      return [item.key, item.text];
    case 'reasoning':
      return [item.key, item.text];
    case 'call':
      return [item.key, item.args, item.result, item.status];
    default:
      return [];
  }
};

const messages = (view: View): readonly unknown[] => view.items.map(said).filter((each) => each.length > 0);

/** No state, and an empty one, are the same. */
const stateOf = (view: View): unknown => (view.state === undefined || view.state === null || (isFields(view.state) && Object.keys(view.state).length === 0) ? null : view.state);

/** Returns what of a prelude the log does not say already: all of it, or nothing. */
export function stands(log: Log, prelude: readonly LogRecord[]): readonly LogRecord[] {
  const before = reduce(log);
  const after = reduce(log.append(...prelude));
  const same = equal(messages(before), messages(after)) && equal(stateOf(before), stateOf(after)) && equal(before.interrupts.map((i) => i.id), after.interrupts.map((i) => i.id));
  return same ? [] : prelude;
}
