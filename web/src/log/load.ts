// Reads what a thread has stored: its runs, their logs, and what was there before the first.

import * as actions from '../api/actions';
import { ApiError, type Server } from '../api/request';
import type { CheckpointDetail, CheckpointList, Log, MessageList, RunInfo, RunList, ThreadInfo } from '../api/types';
import { made } from './book';
import { record, type LogRecord } from './record';

/** So many records are read at once: more of them keep the page busy for longer than one notices. */
const atOnce = 5000;

/** Reads a thread, of the page's own user or of another one. */
export class Reader {
  readonly #server: Server;
  readonly #thread: string;
  readonly #user: string;

  constructor(server: Server, thread: string, user: string) {
    this.#server = server;
    this.#thread = thread;
    this.#user = user;
  }

  #get<T>(action: actions.Readable, signal: AbortSignal): Promise<T> {
    return this.#server.json<T>(actions.as(this.#user, action), signal);
  }

  /** The thread; undefined if there is none yet. */
  async thread(signal: AbortSignal): Promise<ThreadInfo | undefined> {
    return orNone(this.#get<ThreadInfo>(actions.thread(this.#thread), signal));
  }

  /** The runs, newest first: a page of them. */
  async runs(signal: AbortSignal, before = ''): Promise<readonly RunInfo[]> {
    return (await this.#get<RunList>(actions.runs(this.#thread, before), signal)).runs;
  }

  /** Reads the log of a run after a cursor, page by page; false if there is none. */
  async log(run: string, after: string, signal: AbortSignal, page: (records: LogRecord[]) => Promise<void>): Promise<boolean> {
    for (let next: string | undefined = after; next !== undefined; ) {
      const answer: Log | undefined = await orNone(this.#get<Log>(actions.log(this.#thread, run, next, atOnce), signal));
      if (answer === undefined) return false;
      await page(answer.records.map((r) => record(r.event, r.cursor, run)).filter((r) => r !== undefined));
      next = answer.next;
    }
    return true;
  }

  /** The thread when a run was accepted, as records; none if that is not kept, unless it is the first run. */
  async before(run: RunInfo, first: boolean, signal: AbortSignal): Promise<LogRecord[]> {
    const soon = new Date(Date.parse(run.startedAt) + 1000).toISOString();
    const found = await orNone(this.#get<CheckpointList>(actions.checkpoints(this.#thread, soon, 200), signal));
    const input = found?.checkpoints.find((each) => each.runId === run.id && each.metadata.source === 'input');
    if (input !== undefined) {
      const { messages, state } = await this.#get<CheckpointDetail>(actions.checkpointAt(this.#thread, input.id), signal);
      return snapshots(run.id, messages, state);
    }
    if (!first) return [];
    // There is no history any more: what the person said first is still there.
    const { messages } = await this.#get<MessageList>(actions.messages(this.#thread), signal);
    const said = messages.findIndex((message) => message.role !== 'user' && message.role !== 'system' && message.role !== 'developer');
    return snapshots(run.id, said < 0 ? messages : messages.slice(0, said), undefined);
  }
}

function snapshots(runId: string, messages: MessageList['messages'], state: unknown): LogRecord[] {
  const said = made(runId, { type: 'MESSAGES_SNAPSHOT', messages });
  return state === undefined || state === null ? [said] : [said, made(runId, { type: 'STATE_SNAPSHOT', snapshot: state })];
}

/** A run that does not exist, or is not kept, is nothing. */
async function orNone<T>(answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof ApiError && (error.status === 404 || error.code === 'history_not_kept')) return undefined;
    throw error;
  }
}
