// The workbench of reduce: a view that is being changed. Items are values and are replaced,
// never changed; the list of them is copied once after it was handed out, so that a record
// costs the same however long the conversation is.

import type { LogRecord } from './record';
import type { Branch, Inner, Interrupt, Item, OutsideCall, RunView, Status, Usage, View } from './view';

/** The fields of an item: everything but its key. */
type Change<T> = T extends Item ? Partial<Omit<T, 'key' | 'kind'>> : never;

export type Kind = Item['kind'];
export type ItemOf<K extends Kind> = Extract<Item, { kind: K }>;

const nothing: readonly never[] = [];

/** A view of no records. */
export const empty: View = {
  position: 0, number: 0, runId: '', status: 'idle', items: nothing, state: undefined, stateAt: 0,
  interrupts: nothing, outside: nothing, pending: nothing, runs: nothing, usage: nothing, branches: nothing,
  inner: { chunks: { text: '', call: '', reasoning: '' }, before: { items: nothing, number: 0 }, beginning: false, taken: '', cuts: nothing, catching: nothing },
};

export class Fold {
  position: number;
  number: number;
  runId: string;
  status: Status;
  state: unknown;
  stateAt: number;
  interrupts: readonly Interrupt[];
  outside: readonly OutsideCall[];
  pending: readonly string[];
  runs: readonly RunView[];
  usage: readonly Usage[];
  branches: readonly Branch[];
  inner: Inner;
  /** The record that is being taken. */
  record: LogRecord = { cursor: '', number: 0, runId: '', event: { type: '' } };
  #items: Item[];
  #shared = true;
  #index: Map<string, number> | undefined;

  constructor(view: View) {
    this.position = view.position;
    this.number = view.number;
    this.runId = view.runId;
    this.status = view.status;
    this.state = view.state;
    this.stateAt = view.stateAt;
    this.interrupts = view.interrupts;
    this.outside = view.outside;
    this.pending = view.pending;
    this.runs = view.runs;
    this.usage = view.usage;
    this.branches = view.branches;
    this.inner = view.inner;
    this.#items = view.items as Item[]; // copied before the first change
  }

  /** The view as it is now; later changes do not reach it. */
  view(): View {
    this.#shared = true;
    const { position, number, runId, status, state, stateAt, interrupts, outside, pending, runs, usage, branches, inner } = this;
    return { position, number, runId, status, items: this.#items, state, stateAt, interrupts, outside, pending, runs, usage, branches, inner };
  }

  get items(): readonly Item[] {
    return this.#items;
  }

  /** Another list of items; the fold owns it from now on. */
  reset(items: Item[]): void {
    this.#items = items;
    this.#shared = false;
    this.#index = undefined;
  }

  find(key: string): Item | undefined {
    const at = this.#positions().get(key);
    return at === undefined ? undefined : this.#items[at];
  }

  /** The item of that key, if it is of that kind. */
  get<K extends Kind>(key: string, kind: K): ItemOf<K> | undefined {
    const found = this.find(key);
    return found?.kind === kind ? (found as ItemOf<K>) : undefined;
  }

  /** Adds an item at the end. One that is there already is replaced in its place. */
  put(item: Item): void {
    const at = this.#positions().get(item.key);
    this.#own();
    if (at === undefined) {
      this.#positions().set(item.key, this.#items.length);
      this.#items.push(item);
    } else {
      this.#items[at] = item;
    }
  }

  /** Changes an item, which is from now on also about this record. */
  change<K extends Kind>(key: string, kind: K, change: Change<ItemOf<K>>): void {
    const old = this.get(key, kind);
    if (old === undefined) return;
    this.put({ ...old, ...change, last: Math.max(old.last, this.record.number) } as Item);
  }

  /** Puts an item after another, or at the end if that one is not there. */
  putAfter(key: string, item: Item): void {
    const at = this.#positions().get(key);
    if (at === undefined || at === this.#items.length - 1 || this.find(item.key) !== undefined) return this.put(item);
    this.reset([...this.#items.slice(0, at + 1), item, ...this.#items.slice(at + 1)]);
  }

  /** Puts an item before another. */
  putBefore(key: string, item: Item): void {
    const rest = this.#items.filter((each) => each.key !== item.key);
    const at = rest.findIndex((each) => each.key === key);
    rest.splice(at < 0 ? rest.length : at, 0, item);
    this.reset(rest);
  }

  remove(key: string): void {
    if (this.#positions().has(key)) this.reset(this.#items.filter((each) => each.key !== key));
  }

  /** The fields of every item that begins with this record. */
  base(key: string, id: string): { key: string; id: string; runId: string; first: number; last: number; open: boolean; at?: number } {
    const { number, at } = this.record;
    return { key, id, runId: this.runId, first: number, last: number, open: true, ...(at === undefined ? {} : { at }) };
  }

  set(change: Partial<Inner>): void {
    this.inner = { ...this.inner, ...change };
  }

  /** Changes what is known of the current run. */
  run(change: Partial<RunView>): void {
    this.runs = this.runs.map((run) => (run.id === this.runId ? { ...run, ...change } : run));
  }

  #own(): void {
    if (!this.#shared) return;
    this.#items = [...this.#items];
    this.#shared = false;
  }

  #positions(): Map<string, number> {
    this.#index ??= new Map(this.#items.map((item, at) => [item.key, at]));
    return this.#index;
  }
}
