// One open thread, as an external store for React: its log, how it stands, and what the
// person has sent and the server has not confirmed yet. It reads what is stored, then
// follows what comes, and begins again with what is stored whenever the two do not join.

import * as actions from '../api/actions';
import { ApiError, type Action, type Server } from '../api/request';
import type { RunInfo, ThreadInfo } from '../api/types';
import { Book, made } from './book';
import { holdfast, text } from './json';
import { Reader } from './load';
import { isEnd, numberOf, record, type Log, type LogEvent, type LogRecord } from './record';
import { reduce } from './reduce';
import { messagesOf } from './said';
import { stands } from './standing';
import type { View } from './view';

/** loading: nothing is known yet. live: it follows a run. reconnecting: the connection is lost. ended: no run is under way. gone: the server does not show it. */
export type Standing = 'loading' | 'live' | 'reconnecting' | 'ended' | 'gone';

/** The store's state at one moment. */
export interface Snapshot {
  readonly log: Log;
  readonly view: View;
  readonly standing: Standing;
  /** The thread as the server last listed it; undefined for one that does not exist yet. */
  readonly thread: ThreadInfo | undefined;
  /** The messages that the person has sent and the log does not show yet. */
  readonly sent: readonly actions.UserMessage[];
  /** A request is under way that was not confirmed yet. */
  readonly sending: boolean;
  /** Runs before the oldest that is loaded, newest first. */
  readonly earlier: readonly RunInfo[];
  /** Why the thread cannot be shown, or could not be read again. */
  readonly error: ApiError | undefined;
  /** A message that an earlier visit of the page has sent, and that the server has refused in this one. */
  readonly refused: { readonly error: unknown; readonly content: actions.UserMessage['content'] } | undefined;
}

/** The needs of the store from the page. */
export interface Surroundings {
  /** Calls once, before the next frame is painted. */
  frame(call: () => void): void;
  /** Waits; true if nothing has cut the wait short. */
  wait(ms: number, signal: AbortSignal): Promise<boolean>;
  /** Whether anybody sees the page. */
  visible(): boolean;
  /** Keeps what was sent until it is confirmed, across reloads. */
  readonly storage: Pick<Storage, 'getItem' | 'setItem' | 'removeItem'>;
  uuid(): string;
  /** Tells other tabs of this browser that a thread has changed, and hears of it. */
  readonly tabs: { tell(thread: string): void; hear(told: (thread: string) => void): () => void };
}

export interface StoreOptions {
  readonly server: Server;
  readonly thread: string;
  readonly page: Surroundings;
  /** Another user's thread, which an operator only reads. */
  readonly user?: string;
}

/** How often a thread at rest is asked whether somebody else has gone on with it, in milliseconds. */
const glance = 3000;

/** How long to wait after something has gone wrong that often. */
const pause = (failures: number): number => Math.min(10_000, 500 * 2 ** Math.min(failures, 5));

/** A thread's store. Call `open` to begin, and the function that it returns to end. */
export class ThreadStore {
  readonly thread: string;
  readonly #server: Server;
  readonly #page: Surroundings;
  readonly #user: string;
  readonly #reader: Reader;
  readonly #book = new Book();
  readonly #listeners = new Set<() => void>();
  #snapshot: Snapshot;
  #planned = false;
  /** Ends everything. */
  #closed = new AbortController();
  /** Ends what is under way, so that it starts again. */
  #turn = new AbortController();
  #wire: typeof import('./follow') | undefined;
  /** The next turn's input; without it, the thread is read. */
  #outgoing: Outgoing | undefined;

  constructor({ server, thread, page, user = '' }: StoreOptions) {
    this.thread = thread;
    this.#server = server;
    this.#page = page;
    this.#user = user;
    this.#reader = new Reader(server, thread, user);
    const { log } = this.#book;
    this.#snapshot = { log, view: reduce(log), standing: 'loading', thread: undefined, sent: [], sending: false, earlier: [], error: undefined, refused: undefined };
  }

  /** For useSyncExternalStore. */
  subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  /** For useSyncExternalStore. */
  get = (): Snapshot => this.#snapshot;

  /** Shows the thread and follows it until the function that it returns is called. A message that was on its way when the page was left is sent again; the run's id keeps it from running twice. */
  open(): () => void {
    this.#closed = new AbortController();
    const { signal } = this.#closed;
    const kept = this.#user === '' ? this.#page.storage.getItem(this.#slot) : null;
    if (kept !== null && this.#outgoing === undefined) this.#outgoing = this.#unsent(kept);
    const deaf = this.#page.tabs.hear((thread) => {
      if (thread === this.thread && !this.#following) this.refresh();
    });
    signal.addEventListener('abort', () => {
      deaf();
      this.#turn.abort();
    });
    void this.#work(signal);
    return () => {
      this.#closed.abort();
    };
  }

  /** Reads again how the thread stands, and what is new. */
  refresh(): void {
    this.#turn.abort();
  }

  /** Sends messages of a person; it rejects with an ApiError if the server refuses. */
  send(content: actions.UserMessage['content'], choices: actions.Choices = {}, agent = ''): Promise<void> {
    const message: actions.UserMessage = { id: this.#page.uuid(), role: 'user', content };
    // What only the thread as it stood has told, not the log, is over when the log goes on.
    const since = this.#snapshot.standing === 'ended' && this.#book.log === this.#book.records ? messagesOf(this.#snapshot.view).at(-1)?.id : undefined;
    return this.#post({ messages: [message] }, { since, ...choices }, agent, [message]);
  }

  /** Forgets what was refused: it is sent again, or given up. */
  forget(): void {
    this.#change({ refused: undefined });
  }

  /** Goes on with what was left unfinished. */
  resume(): Promise<void> {
    return this.#post({}, {}, '', []);
  }

  /** Answers all open questions. */
  answer(answers: readonly actions.Answer[]): Promise<void> {
    return this.#post({ resume: answers }, {}, '', []);
  }

  /** Replaces what a person has said, and what came of it, by another message. */
  edit(messageId: string, content: actions.UserMessage['content'], agent = ''): Promise<void> {
    const message: actions.UserMessage = { id: this.#page.uuid(), role: 'user', content };
    return this.#post({ messages: [...this.#until(messageId), message] }, { branch: true, whole: true }, agent, [message]);
  }

  /** Gives another answer to a message of a person. */
  regenerate(messageId: string, agent = ''): Promise<void> {
    const said = messagesOf(this.#snapshot.view).find((message) => message.id === messageId);
    return this.#post({ messages: [...this.#until(messageId), ...(said === undefined ? [] : [said])] }, { branch: true, whole: true }, agent, []);
  }

  /** Ends the run that is under way. One that is only just sent, the server does not know yet: it is ended as soon as it does. */
  async stop(): Promise<void> {
    const outgoing = this.#outgoing;
    // A run that the server does not have yet cannot be cancelled.
    if (outgoing !== undefined && !(await outgoing.confirmed)) return;
    await this.#server.send(actions.cancel(this.thread, outgoing?.input.runId ?? this.#snapshot.view.runId));
  }

  /** Does something else to the thread, and reads it again. */
  async act<T>(action: Action): Promise<T> {
    const answer = await this.#server.send(action);
    const said = (answer.status === 204 ? undefined : await answer.json()) as T;
    this.#page.tabs.tell(this.thread);
    this.refresh();
    return said;
  }

  /** Loads the log of the run before the oldest that is loaded; false if there is none. */
  async loadEarlier(): Promise<boolean> {
    const [next, ...rest] = this.#snapshot.earlier;
    if (next === undefined) return false;
    const { signal } = this.#closed;
    const found = await this.#readRun(next, rest.length === 0, signal);
    this.#change({ earlier: found ? rest : [] });
    return found;
  }

  // ——— one turn after another ———

  /** The official client is a fifth of the page, and nothing is followed before a thread is open. */
  async #load(): Promise<typeof import('./follow')> {
    return (this.#wire ??= await import('./follow'));
  }

  get #slot(): string {
    return 'holdfast.pending.' + this.thread;
  }

  get #following(): boolean {
    return this.#snapshot.standing === 'live' || this.#snapshot.sending;
  }

  async #work(closed: AbortSignal): Promise<void> {
    for (let failures = 0; !closed.aborted; ) {
      this.#turn = new AbortController();
      const { signal } = this.#turn;
      try {
        const outgoing = this.#outgoing;
        const before = this.#book.log;
        const rests = outgoing === undefined ? await this.#read(signal) : await this.#deliver(outgoing, signal);
        if (rests) await this.#rest(signal);
        // A record that does not join although nothing is new will not join a moment later either.
        else if (this.#book.log === before && outgoing === undefined) await this.#page.wait(pause(failures++), signal);
        else failures = 0;
      } catch (error) {
        if (closed.aborted) return;
        if (signal.aborted) continue;
        const said = error instanceof ApiError ? error : new ApiError(0, { code: 'page_error', message: 'The page could not read the thread.', hint: String(error) });
        this.#change({ standing: said.passes ? 'reconnecting' : 'gone', error: said });
        await this.#page.wait(Math.max(said.retryAfter * 1000, pause(failures++)), signal);
      }
    }
  }

  /** Reads what is stored, then follows what comes. True: nothing is under way. */
  async #read(signal: AbortSignal): Promise<boolean> {
    const [thread, runs] = await Promise.all([this.#reader.thread(signal), this.#reader.runs(signal).catch((error: unknown) => {
      if (error instanceof ApiError && error.status === 404) return [];
      throw error;
    })]);
    if (thread === undefined) {
      this.#change({ standing: 'ended', thread: undefined, error: undefined });
      return true;
    }
    const at = runs.findIndex((run) => run.id === thread.runId);
    const known = runs.findIndex((run) => this.#book.has(run.id));
    // All that is new, the newest first; at the first look, the current run alone.
    const fresh = known >= 0 ? runs.slice(0, known + 1) : runs.slice(Math.max(at, 0), Math.max(at, 0) + 1);
    let found = false;
    // A fork has the runs of its parent, and no records before it goes on.
    if (thread.cursor !== '') for (const run of [...fresh].reverse()) found = await this.#readRun(run, run === runs.at(-1), signal);
    const oldest = runs.findIndex((run) => run.id === this.#book.oldest);
    const earlier = found && oldest >= 0 ? runs.slice(oldest + 1) : [];
    this.#change({ thread, earlier, error: undefined });
    // Stored records are shown before there is anything to follow with.
    await this.#load();
    signal.throwIfAborted();
    return this.#attach(thread, found, signal);
  }

  /** Reads the log of a run, and what was there before it if the log does not say that. */
  async #readRun(run: RunInfo, first: boolean, signal: AbortSignal): Promise<boolean> {
    const after = this.#book.cursorOf(run.id);
    const found = await this.#reader.log(run.id, after, signal, async (records) => {
      this.#book.add(run.id, records);
      if (!this.#book.tellsBefore(run.id)) this.#book.seed(run.id, await this.#reader.before(run, first, signal));
      // The view is made page by page: of a long run at once, it would keep the browser busy.
      reduce(this.#book.log);
    });
    // It is shown when it is read to its end: before that it would look as if it were under way.
    this.#change({});
    return found;
  }

  /** Follows the thread from where its log ends. */
  async #attach(thread: ThreadInfo, hasLog: boolean, signal: AbortSignal): Promise<boolean> {
    const after = hasLog ? this.#book.records.cursor : '';
    const action = actions.as(this.#user, actions.follow(this.thread, after));
    if (thread.status !== 'running') return this.#follow(action, thread.runId, signal);
    this.#change({ standing: 'live' });
    return (await this.#follow(action, thread.runId, signal)) && this.#settle(signal);
  }

  /** Follows a stream. True: the run has ended; false: the thread has to be read again. */
  async #follow(action: Action, runId: string, signal: AbortSignal, confirmed: () => void = () => {}, said?: readonly actions.UserMessage[]): Promise<boolean> {
    const stream = new AbortController();
    const stop = (): void => stream.abort();
    signal.addEventListener('abort', stop, { once: true });
    const taker = new Taker(this.#book, runId, said);
    try {
      await (this.#wire ?? (await this.#load())).follow(this.#server, action, {
        event: (event, cursor) => {
          confirmed();
          if (taker.take(event, cursor)) this.#change({ standing: taker.ended ? 'ended' : 'live' });
          if (taker.torn) stream.abort();
        },
        connection: (state) => this.#change({ standing: state === 'live' ? 'live' : 'reconnecting' }),
      }, stream.signal);
    } finally {
      signal.removeEventListener('abort', stop);
    }
    signal.throwIfAborted();
    if (taker.torn || !taker.ended) return false;
    if (taker.prelude.length > 0) this.#book.stand(stands(this.#book.records, taker.prelude));
    this.#change({ standing: 'ended' });
    return true;
  }

  /** Waits until somebody goes on with the thread. */
  async #rest(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#page.wait(glance, signal);
      if (signal.aborted || this.#outgoing !== undefined) return;
      if (!this.#page.visible()) continue;
      const now = await this.#reader.thread(signal).catch((error: unknown) => {
        if (error instanceof ApiError && error.passes) return this.#snapshot.thread;
        throw error;
      });
      if (now?.etag !== this.#snapshot.thread?.etag) return;
    }
  }

  // ——— what a person sends ———

  /** The messages before one, as a request names them. */
  #until(messageId: string): actions.SentMessage[] {
    const said = messagesOf(this.#snapshot.view).filter((message) => message.role !== 'activity' && message.role !== 'reasoning');
    return said.slice(0, Math.max(0, said.findIndex((message) => message.id === messageId)));
  }

  #post(more: { messages?: readonly actions.SentMessage[]; resume?: readonly actions.Answer[] }, choices: actions.Choices, agent: string, sent: readonly actions.UserMessage[]): Promise<void> {
    if (this.#outgoing !== undefined) return Promise.reject(new ApiError(409, { code: 'sending', message: 'The message before is still on its way.' }));
    // Unfinished work in a thread belongs to its own agent, whichever is the default.
    const by = agent || (this.#snapshot.thread?.agent ?? '');
    const input = actions.runInput(this.thread, this.#page.uuid(), more, choices);
    return new Promise((done, refused) => {
      this.#outgoing = waiting({ input, agent: by, sent }, done, refused);
      try {
        this.#page.storage.setItem(this.#slot, JSON.stringify({ input, agent: by, sent }));
      } catch {
        // Too large for the browser to keep: it is still sent, but not again after a reload.
      }
      this.#change({ sent, sending: true });
      this.#turn.abort();
    });
  }

  /** A message that an earlier visit of the page has kept. Nobody waits for it any more, so a refusal is shown beside the thread. */
  #unsent(kept: string): Outgoing | undefined {
    try {
      const { input, agent, sent } = JSON.parse(kept) as Posted;
      const content = sent[0]?.content;
      return waiting({ input, agent, sent }, () => {}, (error) => content !== undefined && this.#change({ refused: { error, content } }));
    } catch {
      return undefined;
    }
  }

  /** Sends what a person wants, and follows the run that comes of it. */
  async #deliver(outgoing: Outgoing, signal: AbortSignal): Promise<boolean> {
    this.#change({ sent: outgoing.sent, sending: true });
    if (this.#wire === undefined) await this.#load();
    signal.throwIfAborted();
    const { input, agent, done, refused } = outgoing;
    const over = (): void => {
      if (this.#outgoing !== outgoing) return;
      this.#outgoing = undefined;
      this.#page.storage.removeItem(this.#slot);
      this.#change({ sending: false, sent: [], error: undefined });
    };
    // In a new thread nothing else tells what the person has said.
    const begins = this.#book.records.length === 0;
    try {
      const rests = await this.#follow(actions.run(input, agent), input.runId, signal, () => {
        if (this.#outgoing !== outgoing) return;
        if (begins && outgoing.sent.length > 0) this.#book.seed(input.runId, [made(input.runId, { type: 'MESSAGES_SNAPSHOT', messages: outgoing.sent })]);
        over();
        // The server's view of a new thread; if that cannot be read now, it is when the run has ended.
        if (this.#snapshot.thread === undefined) this.#reader.thread(signal).then((thread) => this.#change({ thread }), () => {});
        this.#page.tabs.tell(this.thread);
        done();
      }, begins ? undefined : outgoing.sent);
      return rests && this.#settle(signal);
    } catch (error) {
      if (signal.aborted) throw error;
      over();
      refused(error);
      return false; // the thread is read, as it stands
    }
  }

  /** Reads what the server says of the thread after a run: its title, its etag. False: its log has more than is here. */
  async #settle(signal: AbortSignal): Promise<boolean> {
    const thread = await this.#reader.thread(signal);
    this.#change({ thread });
    const { cursor } = this.#book.records;
    return cursor === '' || thread === undefined || numberOf(thread.cursor) <= numberOf(cursor);
  }

  #change(change: Partial<Snapshot>): void {
    const log = this.#book.log;
    const old = this.#snapshot;
    const next = { ...old, ...change, log };
    if (log === old.log && Object.entries(change).every(([name, value]) => old[name as keyof Snapshot] === value)) return;
    // The view is made when it is looked at: many records may come between two frames.
    let view: View | undefined;
    this.#snapshot = Object.defineProperty(next, 'view', { get: () => (view ??= reduce(log)), enumerable: true, configurable: true }) as Snapshot;
    if (this.#planned) return;
    this.#planned = true;
    this.#page.frame(() => {
      this.#planned = false;
      for (const listener of this.#listeners) listener();
    });
  }
}

/** The sent message, as it is kept over a reload. */
interface Posted {
  readonly input: actions.RunInput;
  readonly agent: string;
  readonly sent: readonly actions.UserMessage[];
}

/** The message that was sent and is not confirmed. */
interface Outgoing extends Posted {
  /** Whether the server has taken it, once that is known. */
  readonly confirmed: Promise<boolean>;
  done(): void;
  refused(error: unknown): void;
}

function waiting(posted: Posted, done: () => void, refused: (error: unknown) => void): Outgoing {
  let resolve: (taken: boolean) => void = () => {};
  const confirmed = new Promise<boolean>((settle) => {
    resolve = settle;
  });
  return {
    ...posted, confirmed,
    done: () => {
      resolve(true);
      done();
    },
    refused: (error) => {
      resolve(false);
      refused(error);
    },
  };
}

/** Puts the events of one stream into the book. */
class Taker {
  /** How the thread stands, if the stream said that instead of records. */
  prelude: LogRecord[] = [];
  /** The stream does not join with the log. */
  torn = false;
  ended = false;
  readonly #book: Book;
  #runId: string;
  readonly #said: unknown;

  /** @param said what the person has sent: a run that knows that the page has the rest does not tell. */
  constructor(book: Book, runId: string, said: unknown) {
    this.#book = book;
    this.#runId = runId;
    this.#said = said;
  }

  /** True: the log has changed, or the run has ended. */
  take(event: LogEvent, cursor: string): boolean {
    if (this.#said !== undefined && event.type === 'RUN_STARTED') event = { ...event, input: { messages: this.#said } };
    const taken = record(event, cursor, this.#runId);
    if (taken === undefined || this.torn) return false;
    this.#runId = taken.runId;
    if (isEnd(event)) this.ended = true;
    if (cursor !== '') {
      this.torn = this.prelude.length > 0 || !this.#book.append(taken);
      return !this.torn;
    }
    if (event.type === 'RUN_STARTED' && text(holdfast(event)['resyncReason']) !== '') this.#forget(text(holdfast(event)['resyncReason']));
    // A notice that is in no log is shown until the thread is read again.
    if (event.type === 'CUSTOM' && this.prelude.length === 0) return this.#book.append(taken);
    if (event.type !== 'CUSTOM') this.prelude.push(taken);
    return this.ended;
  }

  /** The server has other records than the page. */
  #forget(reason: string): void {
    if (reason === 'beyond_end' || reason === 'other_record' || reason === 'no_log') this.#book.drop(this.#book.newest);
  }
}
