// One run as one stream, out of as many connections as it takes. A POST that was not
// answered is sent again; a stream that ended too soon is continued from the cursor of its
// last event, or, where there is no cursor or the server no longer knows it, by attaching
// to the thread. The client gets one legal sequence of events (see transcript.ts).
import { errorOf } from './refusal.js';
import { encode, parser } from './sse.js';
import { eventsURL, streamURL } from './target.js';
import { isEnd, Transcript } from './transcript.js';
import { abortError, after, discard, retryAfter, sleep } from './wait.js';
/** The shortest pause that a server may ask for with `retry:`, in milliseconds. */
const leastRetry = 100;
const lost = 'The connection to the server was lost and could not be restored. The answer may still be completed there; reload the page to see it.';
export class RunStream {
    #target;
    #init;
    #send;
    #cancels;
    #placing;
    #options;
    #signal;
    #told;
    #transcript;
    /** Aborted when the caller aborts or stops reading. */
    #left = new AbortController();
    #leaving;
    /** The request under way, for an abort before it is answered. */
    #asking = Promise.resolve(undefined);
    #connection = new AbortController();
    /** Whether the server has accepted the request, so that it must not be sent as if it were new. */
    #accepted = false;
    #run;
    #cursor = '';
    /** Chunks whose last one has not come, and whether any was shown. */
    #unfinished = '';
    #shown = false;
    #retry = 500;
    #tries = 0;
    /** When the connection was lost; undefined while there is progress. */
    #lostAt;
    #state;
    #ended = false;
    /** The last failure, for the hint of a RUN_ERROR. */
    #trouble = 'the stream ended before the run did';
    constructor(target, init, send, cancels, placing, options, told) {
        this.#target = target;
        this.#init = init;
        this.#send = send;
        this.#cancels = cancels;
        this.#placing = placing;
        this.#options = options;
        this.#told = told;
        this.#signal = init.signal ?? null;
        this.#transcript = new Transcript(target.run);
        this.#leaving = new Promise((done) => this.#left.signal.addEventListener('abort', () => done()));
    }
    /**
     * Returns the answer to the request: the run's stream, or an answer that refuses it.
     * It rejects only when the caller aborts.
     */
    async open() {
        const onAbort = () => this.#abort();
        this.#signal?.addEventListener('abort', onAbort, { once: true });
        const close = () => this.#signal?.removeEventListener('abort', onAbort);
        try {
            const first = await this.#first();
            if (first !== undefined && !this.#adopt(first)) {
                close();
                // Its text is still to be read, which may be aborted too.
                this.#signal?.addEventListener('abort', () => this.#connection.abort(), { once: true });
                return first;
            }
            const headers = first?.headers ?? { 'Content-Type': 'text/event-stream' };
            return new Response(this.#body(first, close), { status: 200, headers });
        }
        catch (error) {
            close();
            throw error;
        }
    }
    /** Sends the request until it is answered; undefined means that it gave up. */
    async #first() {
        for (;;) {
            const response = await this.#ask(this.#target.url, this.#init);
            if (response !== undefined && ![502, 503, 504].includes(response.status))
                return response;
            this.#note(response);
            if (!(await this.#pause(response)))
                return undefined;
        }
    }
    /** Takes over an answer that is a run's stream; false means that it is not one. */
    #adopt(response) {
        if (response.status !== 200 || !response.headers.get('Content-Type')?.startsWith('text/event-stream'))
            return false;
        this.#accepted = true;
        this.#run = response.headers.get('Holdfast-Run') ?? this.#run ?? this.#target.run;
        return true;
    }
    /** The stream that the client reads. Its errors are aborts, and nothing else. */
    #body(first, close) {
        const encoder = new TextEncoder();
        const pieces = this.#pieces(first);
        return new ReadableStream({
            pull: async (controller) => {
                try {
                    const { done, value } = await pieces.next();
                    if (!done)
                        return controller.enqueue(encoder.encode(value));
                    controller.close();
                }
                catch (error) {
                    controller.error(error);
                }
                close();
            },
            cancel: async () => {
                close(); // a client that stops reading only detaches
                this.#leave();
                this.#connection.abort();
                await pieces.return(undefined);
            },
        });
    }
    /** Yields what the client is to see, in whole frames, until the run has ended. */
    async *#pieces(response) {
        let failure;
        while (response !== undefined) {
            yield* this.#read(response);
            if (this.#ended)
                return;
            const next = await this.#reconnect();
            if (!(next instanceof Response))
                failure = next;
            response = next instanceof Response ? next : undefined;
        }
        const { message, code, hint } = failure ?? this.#lost();
        if (this.#target.ui) {
            yield `${encode({ type: 'error', errorText: message })}data: [DONE]\n\n`;
            return;
        }
        // The older dialect has no place for hints.
        const metadata = this.#target.legacy ? {} : { metadata: { holdfast: { hint } } };
        yield encode({ type: 'RUN_ERROR', message, code, ...metadata });
    }
    /** Yields one connection's frames; it returns when the connection has ended, however it did. */
    async *#read(response) {
        const reader = response.body.getReader();
        const decoder = new TextDecoder();
        const parse = parser();
        try {
            for (;;) {
                const { done, value } = await this.#watched(reader.read());
                this.#checkAborted();
                if (done)
                    return;
                let text = '';
                let over = false;
                for (const frame of parse(decoder.decode(value, { stream: true }))) {
                    const piece = this.#take(frame);
                    over = piece === undefined || this.#ended;
                    text += piece ?? '';
                    if (over)
                        break;
                }
                if (text !== '')
                    yield text;
                if (over)
                    return;
            }
        }
        catch (error) {
            this.#checkAborted();
            this.#trouble = String(error);
        }
        finally {
            reader.cancel().catch(() => { }); // it may have failed already
        }
    }
    /** Returns what the client is to see of a frame; undefined means that this connection is over. */
    #take(frame) {
        if (frame.retry !== undefined)
            this.#retry = Math.max(leastRetry, frame.retry);
        if (frame.comment !== undefined && frame.comment !== 'holdfast')
            this.#progress();
        if (frame.data === undefined)
            return '';
        if (this.#target.ui)
            return this.#chunk(frame.data, frame.id);
        const event = read(frame.data);
        if (event === undefined)
            return undefined;
        // A notice that this stream ends, not the run. The server leaves it out if it knows that the client comes back.
        if (event.type === 'RUN_ERROR' && event.code === 'stream_cut' && frame.id === undefined)
            return undefined;
        // A start without an id is made of snapshots: cursors from before it are void.
        if (event.type === 'RUN_STARTED')
            this.#cursor = '';
        if (frame.id !== undefined) {
            this.#cursor = frame.id;
            this.#progress();
        }
        if (isEnd(event))
            this.#ended = true;
        const shown = this.#transcript.take(event);
        return shown.map((e, i) => encode(e, i === shown.length - 1 ? frame.id : undefined)).join('');
    }
    /**
     * Takes a chunk of the AI SDK's. Chunks that belong together end with the one that has an id:
     * the client of a run of its own gets all of them or, after a cut, all of them later.
     */
    #chunk(data, id) {
        this.#unfinished += `data: ${data}\n\n`;
        if (data === '[DONE]')
            this.#ended = true;
        if (id !== undefined) {
            this.#cursor = id;
            this.#progress();
        }
        if (id === undefined && !this.#ended && this.#target.run !== undefined)
            return '';
        const whole = this.#unfinished;
        this.#unfinished = '';
        this.#shown = true;
        return whole;
    }
    #progress() {
        this.#tries = 0;
        this.#lostAt = undefined;
        this.#tell('live');
    }
    /** Asks until the run can be followed again. */
    async #reconnect() {
        let last;
        this.#unfinished = '';
        // An answer that a page has come to late cannot be shown to it a second time.
        if (this.#target.ui && this.#target.run === undefined && this.#shown && this.#cursor === '')
            return this.#lost();
        for (;;) {
            if (!(await this.#pause(last)))
                return this.#lost();
            const [url, init] = this.#next();
            const response = await this.#ask(url, init);
            if (response !== undefined && this.#adopt(response))
                return response;
            last = response;
            this.#note(response);
            if (response === undefined || response.status === 429 || response.status >= 500)
                continue;
            if ((this.#target.ui || this.#cursor === '') && response.status >= 400)
                return this.#watched(refusal(response));
            if (this.#target.ui)
                return this.#lost();
            // 204: nothing is missing, though the end was not seen. 400 and 404: the cursor or the run is
            // unknown. In each case attaching to the thread shows how it stands.
            this.#cursor = '';
            discard(response);
        }
    }
    /** The next request. */
    #next() {
        const { url, base, thread, legacy, ui } = this.#target;
        const headers = new Headers(this.#init.headers);
        const knows = this.#cursor !== '' && (ui || this.#run !== undefined);
        if (knows)
            headers.set('Last-Event-ID', this.#cursor);
        if (ui)
            return [url, { ...this.#init, headers }]; // the server knows what it has answered
        headers.delete('Content-Type');
        const init = { ...this.#init, method: 'GET', body: null, headers };
        if (!knows || this.#run === undefined)
            return [streamURL(base, thread, legacy), init];
        return [eventsURL(base, thread, this.#run, legacy), init];
    }
    /** Sends one request; undefined means that there was no answer. */
    async #ask(url, init) {
        this.#checkAborted();
        this.#connection = new AbortController();
        const headers = new Headers(init.headers);
        headers.set('Holdfast-Resume', '1');
        if (init.method === 'POST')
            this.#placing.name(headers, url, this.#target.thread);
        const asking = this.#watched(this.#send(url, { ...init, headers, signal: this.#connection.signal })).catch((error) => {
            this.#trouble = String(error);
            return undefined;
        });
        this.#asking = asking;
        const response = await Promise.race([asking, this.#leaving]);
        this.#checkAborted();
        if (response instanceof Response)
            this.#placing.note(url, response);
        return response ?? undefined;
    }
    /** Waits before the next attempt; false means that it is time to give up. */
    async #pause(last) {
        this.#checkAborted();
        const now = Date.now();
        this.#lostAt ??= now;
        this.#tell('reconnecting');
        const left = this.#lostAt + (this.#options.patience ?? 120_000) - now;
        const asked = last === undefined ? 0 : retryAfter(last);
        discard(last);
        if (left <= 0 || asked > left)
            return false;
        // Jitter keeps the clients of a restarted server from all coming back at once.
        const backoff = Math.min(this.#options.maxDelay ?? 10_000, this.#retry * 2 ** Math.min(this.#tries++, 20)) * (0.5 + Math.random() / 2);
        await sleep(Math.max(asked, Math.min(backoff, left)), this.#left.signal);
        this.#checkAborted();
        return true;
    }
    /** Drops the connection if what is awaited takes as long as only a dead connection does. */
    async #watched(waiting) {
        const connection = this.#connection;
        const timer = after(this.#options.silence ?? 40_000, () => connection.abort());
        try {
            return await waiting;
        }
        finally {
            clearTimeout(timer);
        }
    }
    #checkAborted() {
        if (this.#signal?.aborted || this.#left.signal.aborted)
            throw abortError();
    }
    /** Ends every wait; nothing is asked for after it. */
    #leave() {
        this.#left.abort();
        if (this.#state === 'reconnecting')
            this.#tell('live');
    }
    #abort() {
        this.#leave();
        const accepted = this.#accepted;
        const cancels = this.#options.onAbort !== 'detach' && !this.#ended;
        if (accepted || !cancels)
            this.#connection.abort();
        if (!cancels)
            return;
        // A request that is under way may still start the run, so it is let through first.
        // (A promise later: the abort may come from within the fetch that sends it.)
        const started = accepted ? Promise.resolve(this.#run) : Promise.resolve().then(() => this.#asking).then((response) => {
            discard(response);
            return response?.headers.get('Holdfast-Run') ?? this.#target.run;
        });
        const headers = new Headers(this.#init.headers);
        // The server takes changes from pages of other origins only as JSON, body or not.
        headers.set('Content-Type', 'application/json');
        headers.set('Accept', 'application/json');
        this.#cancels.start(this.#target, headers, started);
    }
    #tell(state) {
        if (this.#state === state)
            return;
        this.#state = state;
        this.#told(state);
    }
    #note(response) {
        if (response !== undefined)
            this.#trouble = `the server answered ${response.status}`;
    }
    #lost() {
        return { message: lost, code: 'connection_lost', hint: `${this.#target.base || 'The server'} could not be reached: ${this.#trouble}.` };
    }
}
/** Returns the event in a frame; undefined means that the frame was damaged on its way. */
function read(data) {
    try {
        const event = JSON.parse(data);
        return typeof event?.type === 'string' ? event : undefined;
    }
    catch {
        return undefined;
    }
}
/** Reads why the server refuses to show the run. */
async function refusal(response) {
    const { message, code, hint } = await errorOf(response);
    return { message: message ?? lost, code: code ?? 'connection_lost', hint: hint ?? `The server answered ${response.status}.` };
}
