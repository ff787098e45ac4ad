import { HttpAgent } from '@ag-ui/client';
import { resumingFetch } from './fetch.js';
import { errorOf } from './refusal.js';
import { orWhole, short, shortened, standOf } from './stand.js';
import { baseOf, streamURL } from './target.js';
import { encode } from './sse.js';
/** Every agent's own reactions to its events; clones have this subscriber too, so it keeps nothing itself. */
const remember = {
    // The server's snapshots are whole. The official client keeps reasoning that is not in them,
    // as it must for servers that leave reasoning out; here it is of an attempt that was given up.
    onMessagesSnapshotEvent: ({ event, messages }) => {
        const known = new Set(event.messages.map((message) => message.id));
        return { messages: messages.filter((message) => message.role !== 'reasoning' || known.has(message.id)) };
    },
    onRunStartedEvent: ({ agent }) => {
        // The server has taken the answers. The official client keeps the questions if the run then fails, and refuses
        // every message.
        agent.pendingInterrupts = [];
        agent.outside = [];
        agent.stand = undefined;
    },
    onCustomEvent: ({ event, agent }) => {
        if (event.name === 'holdfast.outside_calls')
            agent.outside = event.value.calls ?? [];
    },
    onRunFinishedEvent: ({ agent }) => {
        agent.stand = standOf(agent.threadId, []);
    },
    // Only now the agent has all messages of the run.
    onRunFinalized: ({ agent, messages }) => {
        if (agent.stand !== undefined)
            agent.stand = standOf(agent.threadId, messages);
    },
};
/**
 * An `HttpAgent` for a Holdfast server. Runs survive cut connections and restarts of the
 * server (see {@link resumingFetch}, which its `fetch` is), `connectAgent()` shows a thread
 * as it is and follows its run, and `abortRun()` ends the run on the server.
 */
export class HoldfastAgent extends HttpAgent {
    /** Sent with every run, as `forwardedProps.holdfast`. */
    holdfast;
    /** @internal what {@link outsideCalls} returns */
    outside = [];
    /** @internal what it has, as the server has it; undefined if that is not sure */
    stand;
    base;
    /** @internal how it sends and waits */
    options;
    constructor(config) {
        const options = { ...config };
        super({ ...config, fetch: orWhole(resumingFetch(options)) });
        this.options = options;
        this.holdfast = { ...config.holdfast };
        this.base = config.base ?? baseOf(config.url);
        this.subscribe(remember);
    }
    /** A new agent with the same thread, messages, options, open questions and outside calls. */
    clone() {
        const copy = super.clone();
        return Object.assign(copy, { holdfast: { ...this.holdfast }, base: this.base, options: this.options, outside: [...this.outside], stand: this.stand });
    }
    /** Stops watching the run, which goes on: what a page does when it shows another thread. */
    detach() {
        const { onAbort = 'cancel' } = this.options;
        this.options.onAbort = 'detach'; // is read while the abort is told
        this.abortRun();
        this.options.onAbort = onAbort;
    }
    /**
     * The calls that the thread waits for: the last run has ended, but its work has not. When
     * their results have come, `connectAgent()` shows how it went on.
     */
    outsideCalls() {
        return [...this.outside];
    }
    /** Shows the thread as it is, and follows its run. */
    connectAgent(...[parameters, subscriber]) {
        this.pendingInterrupts = []; // the official client would ask for answers; the server says what is open now
        return super.connectAgent(parameters, subscriber);
    }
    prepareRunAgentInput(parameters) {
        const input = super.prepareRunAgentInput(parameters);
        const choices = { ...this.holdfast, ...input.forwardedProps?.holdfast };
        return Object.keys(choices).length === 0 ? input : { ...input, forwardedProps: { ...input.forwardedProps, holdfast: choices } };
    }
    requestInit(input) {
        const all = super.requestInit(input);
        const less = shortened(input, this.stand);
        return less === undefined ? all : short(super.requestInit(less), all);
    }
    /** @internal the server's address; it throws if that is not known */
    address() {
        if (this.base !== undefined)
            return this.base;
        throw new Error(`The server's address is not clear from ${this.url}: pass "base" to HoldfastAgent.`);
    }
    /**
     * The stream that `connectAgent()` reads: the thread as it is, then its run, live. A thread that the
     * server does not know is an empty run.
     */
    connect(input) {
        const base = this.address();
        if (this.abortController.signal.aborted)
            this.abortController = new AbortController();
        const init = () => {
            const { body: _, ...rest } = this.requestInit(input);
            const headers = new Headers(rest.headers);
            headers.delete('Content-Type');
            return { ...rest, method: 'GET', headers };
        };
        // The official client's own reader of streams, with another request.
        const attach = Object.create(this, {
            url: { value: streamURL(base, input.threadId, !('protocolVersion' in input)) },
            requestInit: { value: init },
            fetch: { value: async (url, request) => orEmpty(await this.fetch(url, request), input) },
        });
        return HttpAgent.prototype.run.call(attach, input);
    }
}
/** Turns "there is no such thread" into a run in which nothing happens. */
async function orEmpty(response, input) {
    const { threadId, runId } = input;
    if (response.status !== 404)
        return response;
    const { code } = await errorOf(response.clone());
    if (code !== 'not_found')
        return response;
    const { protocolVersion } = input;
    const outcome = protocolVersion === undefined ? {} : { outcome: { type: 'success' } };
    const empty = encode({ type: 'RUN_STARTED', threadId, runId, protocolVersion }) + encode({ type: 'RUN_FINISHED', threadId, runId, ...outcome });
    return new Response(empty, { headers: { 'Content-Type': 'text/event-stream' } });
}
