// For tests: a server that is played, with one thread that has a log, and streams that can be cut.
// Its requests are those of the real one. And a page whose time the test has in its hands.

import type { RunInput } from '../api/actions';
import type { LogEvent } from './record';
import type { Surroundings } from './store';

interface Stream {
  send(event: LogEvent, cursor?: string): void;
  cut(): void;
}

/** One thread of a server. */
export class PlayedServer {
  readonly asked: { method: string; path: string; headers: Headers; body: unknown }[] = [];
  readonly runs: { id: string; events: LogEvent[]; from: number }[] = [];
  exists = true;
  /** It has what it was forked with, and no records of its own. */
  forked = false;
  status = 'idle';
  etag = 1;
  down = false;
  /** As the server does; proxies may take the header away. */
  namesRuns = true;
  refuses: { status: number; code: string } | undefined;
  /** It is of a release that does not know what pages say about where they stand. */
  older = false;
  /** The parts of the thread that its log does not say. */
  stands: LogEvent[] | undefined;
  /** The messages with which runs began, of which it has checkpoints. */
  inputs: Readonly<Record<string, readonly unknown[]>> | undefined;
  #streams: Stream[] = [];
  #number = 0;

  /** Adds records to the newest run, or begins one, and sends them to who watches. */
  say(...events: LogEvent[]): void {
    for (const event of events) {
      this.#number++;
      if (event.type === 'RUN_STARTED') {
        this.runs.push({ id: String(event['runId']), events: [], from: this.#number });
        this.status = 'running';
      }
      this.runs.at(-1)?.events.push(event);
      if (event.type === 'RUN_FINISHED' || event.type === 'RUN_ERROR') this.status = 'idle';
      this.etag++;
      for (const stream of this.#streams) stream.send(event, `${this.#number}-x`);
    }
  }

  /** Everybody loses the connection. */
  cut(): void {
    for (const stream of this.#streams.splice(0)) stream.cut();
  }

  get watchers(): number {
    return this.#streams.length;
  }

  fetch = async (url: string | URL | Request, init: RequestInit = {}): Promise<Response> => {
    init.signal?.throwIfAborted();
    const { pathname, searchParams } = new URL(String(url));
    const headers = new Headers(init.headers);
    const method = init.method ?? 'GET';
    const body: unknown = typeof init.body === 'string' ? JSON.parse(init.body) : undefined;
    if (this.down) throw new TypeError('connection refused');
    this.asked.push({ method, path: pathname, headers, body });
    if (method === 'POST' && (pathname === '/runs' || pathname === '/agents/a/runs')) return this.#run(body as RunInput, init);
    if (method === 'POST') return Response.json({}, { status: 202 });
    if (!this.exists) return Response.json({ error: { code: 'not_found', message: 'none' } }, { status: 404 });
    if (pathname.endsWith('/events')) return this.#open(init, this.#after(headers.get('Last-Event-ID') ?? ''));
    if (pathname.endsWith('/stream')) return this.#stream(headers.get('Last-Event-ID') ?? '', init);
    if (pathname.endsWith('/log')) return this.#log(pathname, searchParams.get('after') ?? '');
    if (pathname.endsWith('/runs')) return Response.json({ runs: [...this.runs].reverse().map((run) => ({ id: run.id, agent: 'a', startedAt: new Date(1000).toISOString() })) });
    if (pathname.endsWith('/checkpoints') && this.inputs !== undefined) return Response.json({ checkpoints: Object.keys(this.inputs).map((runId) => ({ id: runId, runId, metadata: { source: 'input' } })) });
    if (pathname.includes('/checkpoints/')) return Response.json({ messages: this.inputs?.[pathname.split('/').at(-1) ?? ''] ?? [] });
    if (pathname.endsWith('/checkpoints')) return Response.json({ error: { code: 'history_not_kept', message: 'no' } }, { status: 409 });
    if (pathname.endsWith('/messages')) return Response.json({ messages: [{ id: 'u1', role: 'user', content: 'go' }, { id: 'm1', role: 'assistant', content: 'x' }] });
    const run = this.runs.at(-1);
    return Response.json({ id: 't', agent: 'a', status: this.status, runId: run?.id ?? '', iteration: 0, cursor: this.forked ? '' : `${this.#number}-x`, updatedAt: '', etag: String(this.etag) });
  };

  #run(input: RunInput, init: RequestInit): Response {
    if (this.refuses !== undefined) return Response.json({ error: { code: this.refuses.code, message: 'No.' } }, { status: this.refuses.status });
    if (this.older && input.forwardedProps.holdfast.since !== undefined) return Response.json({ error: { code: 'invalid_input', message: 'There is no option forwardedProps.holdfast.since.' } }, { status: 400 });
    const known = this.runs.some((run) => run.id === input.runId);
    this.exists = true;
    const response = this.#open(init, known ? this.#records().filter((record) => record.run === input.runId) : []);
    if (!known) this.say({ type: 'RUN_STARTED', threadId: 't', runId: input.runId }, ...(this.runs.length > 0 && input.forwardedProps.holdfast.since === undefined ? [{ type: 'MESSAGES_SNAPSHOT', messages: input.messages }] : []));
    return response;
  }

  #records(): { cursor: string; number: number; event: LogEvent; run: string }[] {
    return this.runs.flatMap((run) => run.events.map((event, i) => ({ cursor: `${run.from + i}-x`, number: run.from + i, event, run: run.id })));
  }

  #log(pathname: string, after: string): Response {
    const id = pathname.split('/').at(-2);
    const records = this.#records().filter((record) => record.run === id && record.number > (Number.parseInt(after, 10) || 0));
    return Response.json({ records: records.slice(0, 3), ended: this.status !== 'running', ...(records.length > 3 ? { next: records[2]?.cursor } : {}) });
  }

  #after(cursor: string): { event: LogEvent; cursor: string }[] {
    return this.#records().filter((record) => record.number > (Number.parseInt(cursor, 10) || 0));
  }

  #stream(after: string, init: RequestInit): Response {
    if (this.status === 'running' && after !== '') return this.#open(init, this.#after(after));
    const runId = this.runs.at(-1)?.id ?? 'none';
    const response = this.#open(init, []);
    const [stream] = this.#streams.splice(-1);
    for (const event of [{ type: 'RUN_STARTED', threadId: 't', runId }, ...(this.stands ?? []), { type: 'RUN_FINISHED', threadId: 't', runId, outcome: { type: 'success' } }]) stream?.send(event);
    return response;
  }

  #open(init: RequestInit, first: readonly { event: LogEvent; cursor: string }[]): Response {
    const encoder = new TextEncoder();
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        const stream: Stream = {
          send: (event, cursor) => {
            const own = cursor === undefined ? event : { ...event, metadata: { holdfast: { cursor } } };
            controller.enqueue(encoder.encode(`${cursor === undefined ? '' : `id: ${cursor}\n`}data: ${JSON.stringify(own)}\n\n`));
            if (event.type === 'RUN_FINISHED' || event.type === 'RUN_ERROR') {
              this.#streams = this.#streams.filter((each) => each !== stream);
              controller.close();
            }
          },
          cut: () => controller.error(new TypeError('network error')),
        };
        this.#streams.push(stream);
        init.signal?.addEventListener('abort', () => {
          if (!this.#streams.includes(stream)) return;
          this.#streams = this.#streams.filter((each) => each !== stream);
          controller.error(new DOMException('aborted', 'AbortError'));
        });
        for (const { event, cursor } of first) stream.send(event, cursor);
      },
    });
    const run: Record<string, string> = this.namesRuns ? { 'Holdfast-Run': this.runs.at(-1)?.id ?? '' } : {};
    return new Response(body, { headers: { 'Content-Type': 'text/event-stream', ...run } });
  }
}

/** A page whose waits end when the test says so. */
export class PlayedPage implements Surroundings {
  readonly kept = new Map<string, string>();
  readonly storage = { getItem: (key: string) => this.kept.get(key) ?? null, setItem: (key: string, value: string) => void this.kept.set(key, value), removeItem: (key: string) => void this.kept.delete(key) };
  readonly told: string[] = [];
  readonly tabs = {
    tell: (thread: string) => void this.told.push(thread),
    hear: (told: (thread: string) => void) => {
      this.hears = told;
      return () => {};
    },
  };
  hears: (thread: string) => void = () => {};
  frames = 0;
  seen = true;
  #waits = new Set<() => void>();
  #begun: (() => void)[] = [];
  #ids = 0;

  frame(call: () => void): void {
    this.frames++;
    queueMicrotask(call);
  }
  wait(_ms: number, signal: AbortSignal): Promise<boolean> {
    return new Promise((done) => {
      const end = (whole: boolean) => (): void => {
        this.#waits.delete(over);
        done(whole);
      };
      const over = end(true);
      this.#waits.add(over);
      for (const begun of this.#begun.splice(0)) begun();
      if (signal.aborted) end(false)();
      else signal.addEventListener('abort', end(false), { once: true });
    });
  }
  /** The time that is waited for is over. */
  pass(): void {
    for (const over of [...this.#waits]) over();
  }
  /** Resolves when the store waits. */
  waits(): Promise<void> {
    return this.#waits.size > 0 ? Promise.resolve() : new Promise((done) => this.#begun.push(done));
  }
  visible = (): boolean => this.seen;
  uuid = (): string => `id${++this.#ids}`;
}
