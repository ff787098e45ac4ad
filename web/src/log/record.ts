// The log of a thread: its records in order, as far as the page has them. A Log never
// changes. One that is longer shares all that it has with the one it was made from, so that
// appending costs what is appended.

import { holdfast, isFields, number, text } from './json';

/** An AG-UI event, as it came. Only its type is sure. */
export interface LogEvent {
  readonly type: string;
  readonly [name: string]: unknown;
}

/** One record of a thread's log. */
export interface LogRecord {
  /** Where a stream goes on after it: number and tag, like `57-3fq7xk`. Empty for what is no record but shown like one, as the snapshot of a thread. */
  readonly cursor: string;
  /** Its number in the thread's log, dense from 1; 0 without a cursor. In an archived log a text is one record, with the number of its last one. */
  readonly number: number;
  /** The run it belongs to. */
  readonly runId: string;
  readonly event: LogEvent;
  /** When it happened, by the server's clock in milliseconds. Pieces of texts do not say. */
  readonly at?: number;
}

/** Returns what came over the wire as a record; undefined if it is no event. */
export function record(event: unknown, cursor: string, runId: string): LogRecord | undefined {
  if (!isFields(event) || typeof event['type'] !== 'string') return undefined;
  const at = number(event['timestamp']);
  const own = event['type'] === 'RUN_STARTED' ? text(holdfast(event)['runId']) || text(event['runId']) : runId;
  return { cursor, number: numberOf(cursor), runId: own || runId, event: event as LogEvent, ...(at === undefined ? {} : { at }) };
}

/** Whether it is no record of the log, but shown like one: how a thread stands, or what was there before its first run. */
export const isShown = (record: LogRecord): boolean => record.number === 0;

/** The number in a cursor; 0 if it has none. */
export function numberOf(cursor: string): number {
  const found = /^(\d{1,15})(?:-|$)/.exec(cursor);
  return found ? Number(found[1]) : 0;
}

/** Whether an event is the last one of its run. */
export const isEnd = (event: LogEvent): boolean => event.type === 'RUN_FINISHED' || (event.type === 'RUN_ERROR' && event['code'] !== 'stream_cut');

/** The data that all logs share that grew out of each other: the records, and what was computed of them. */
export interface Tape {
  readonly records: LogRecord[];
  /** For code that computes something of the records; one value for each computation. */
  readonly memory: Map<object, unknown>;
}

/** The records of a thread. It is a value: `append` returns another one. */
export class Log {
  readonly #tape: Tape;
  /** How many records it has. */
  readonly length: number;

  private constructor(tape: Tape, length: number) {
    this.#tape = tape;
    this.length = length;
  }

  /** Returns the log of these records, in their order. */
  static of(records: readonly LogRecord[] = []): Log {
    return new Log({ records: [...records], memory: new Map() }, records.length);
  }

  /** Returns this log with more records at its end. */
  append(...more: readonly LogRecord[]): Log {
    if (more.length === 0) return this;
    // Somebody else has gone on from here already, with other records.
    if (this.#tape.records.length !== this.length) return Log.of([...this.#tape.records.slice(0, this.length), ...more]);
    for (const each of more) this.#tape.records.push(each);
    return new Log(this.#tape, this.length + more.length);
  }

  /** The record at an index, from 0. */
  at(index: number): LogRecord | undefined {
    return index < this.length ? this.#tape.records[index] : undefined;
  }

  /** The records from one index to before another. */
  slice(from = 0, to = this.length): LogRecord[] {
    return this.#tape.records.slice(from, Math.min(to, this.length));
  }

  /** The newest record that a stream can go on after. */
  get cursor(): string {
    for (let i = this.length - 1; i >= 0; i--) {
      const { cursor } = this.#tape.records[i] as LogRecord;
      if (cursor !== '') return cursor;
    }
    return '';
  }

  /**
   * The position at which the record of a number has just happened: how many records
   * `reduce` has to take. If there is no such record, that of the last one before it.
   */
  positionOf(wanted: number): number {
    const { records } = this.#tape;
    let [low, high] = [0, this.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#numbered(middle) <= wanted) low = middle + 1;
      else high = middle;
    }
    // Without a number of its own, what follows a record is not a part of it.
    while (low > 0 && (records[low - 1] as LogRecord).number === 0 && this.#numbered(low - 1) !== 0) low--;
    return low;
  }

  /** The number of a record, or of the last one before it that has one. */
  #numbered(index: number): number {
    for (let i = index; i >= 0; i--) {
      const { number: found } = this.#tape.records[i] as LogRecord;
      if (found !== 0) return found;
    }
    return 0;
  }

  /** @internal what computations of this log keep, for all logs that share its records */
  get tape(): Tape {
    return this.#tape;
  }
}
