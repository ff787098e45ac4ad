// The page's copy of a thread's log: the records of its runs, some of them, put together to
// one Log. Runs are loaded in any order; records that come twice count once.

import { Log, type LogRecord } from './record';

/** The records of one run. */
interface Chapter {
  readonly runId: string;
  records: LogRecord[];
  /** The state before it, if its own records do not say. */
  seed: readonly LogRecord[];
}

const lastNumber = (chapter: Chapter): number => chapter.records.at(-1)?.number ?? 0;

/** A record that is none: it is shown like one. */
export const made = (runId: string, event: LogRecord['event']): LogRecord => ({ cursor: '', number: 0, runId, event });

export class Book {
  #chapters: Chapter[] = [];
  #standing: readonly LogRecord[] = [];
  #log = Log.of();
  /** The part of the log at its end that is not the standing. */
  #plain = Log.of();

  /** All records, and how the thread stands if they do not say it. */
  get log(): Log {
    return this.#log;
  }

  /** The records alone. */
  get records(): Log {
    return this.#plain;
  }

  has = (runId: string): boolean => this.#chapters.some((chapter) => chapter.runId === runId);

  /** The cursor of the last record of a run; '' if there is none. */
  cursorOf(runId: string): string {
    return this.#chapters.find((chapter) => chapter.runId === runId)?.records.at(-1)?.cursor ?? '';
  }

  get newest(): string {
    return this.#chapters.at(-1)?.runId ?? '';
  }

  get oldest(): string {
    return this.#chapters[0]?.runId ?? '';
  }

  /** Adds what follows the last record of the newest run, or begins a newer one. False: something is missing before it. */
  append(record: LogRecord): boolean {
    const last = this.#chapters.at(-1);
    if (record.number !== 0 && last !== undefined && record.number <= lastNumber(last)) return true; // it is there already
    if (record.event.type === 'RUN_STARTED' && record.number !== 0 && last?.runId !== record.runId) {
      if (last !== undefined && record.number !== lastNumber(last) + 1) return false;
      this.#chapters.push({ runId: record.runId, records: [record], seed: [] });
    } else {
      if (last === undefined || last.runId !== record.runId) return false;
      if (record.number !== 0 && record.number !== lastNumber(last) + 1) return false;
      last.records.push(record);
    }
    this.#grow([record]);
    return true;
  }

  #grow(records: readonly LogRecord[]): void {
    this.#plain = this.#plain.append(...records);
    // Views made of the thread as it stood are over when the log goes on.
    this.#standing = [];
    this.#log = this.#plain;
  }

  /** Adds the page of a run's log that follows what is there of it. */
  add(runId: string, records: readonly LogRecord[]): void {
    const known = this.#chapters.find((chapter) => chapter.runId === runId);
    const after = known === undefined ? 0 : lastNumber(known);
    const fresh = records.filter((record) => record.number > after);
    if (known !== undefined) {
      for (const record of fresh) known.records.push(record);
      if (fresh.length === 0) return;
      if (known === this.#chapters.at(-1)) return this.#grow(fresh);
    } else {
      this.#chapters.push({ runId, records: [...fresh], seed: [] });
      this.#chapters.sort((a, b) => lastNumber(a) - lastNumber(b));
      if (this.#chapters.at(-1)?.runId === runId) return this.#grow(fresh);
    }
    this.#rebuild();
  }

  /** Says what was there before a run. */
  seed(runId: string, records: readonly LogRecord[]): void {
    const chapter = this.#chapters.find((each) => each.runId === runId);
    if (chapter === undefined) this.#chapters.unshift({ runId, records: [], seed: records });
    else chapter.seed = records;
    this.#rebuild();
  }

  /** Forgets the records of a run, which turned out to be others. */
  drop(runId: string): void {
    this.#chapters = this.#chapters.filter((chapter) => chapter.runId !== runId);
    this.#rebuild();
  }

  /** How the thread stands, where the log does not say it. */
  stand(records: readonly LogRecord[]): void {
    if (records.length === 0 && this.#standing.length === 0) return;
    this.#standing = records;
    this.#log = this.#plain.append(...records);
  }

  /** Whether a run's own records say what was there before it. */
  tellsBefore(runId: string): boolean {
    const chapter = this.#chapters.find((each) => each.runId === runId);
    if (chapter === undefined) return false;
    if (chapter.seed.length > 0) return true;
    for (const { event } of chapter.records) {
      if (event.type === 'MESSAGES_SNAPSHOT' && Array.isArray(event['messages']) && event['messages'].length > 0) return true;
      if (event.type === 'TEXT_MESSAGE_START' || event.type === 'REASONING_MESSAGE_START' || event.type === 'TOOL_CALL_START') return false;
    }
    return false;
  }

  #rebuild(): void {
    this.#plain = Log.of(this.#chapters.flatMap((chapter) => [...chapter.seed, ...chapter.records]));
    this.#log = this.#plain.append(...this.#standing);
  }
}
