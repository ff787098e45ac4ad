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
        agent.questions = [];
        agent.outside = [];
        agent.stand = undefined;
    },
    onCustomEvent: ({ event, agent }) => {
        if (event.name === 'holdfast.outside_calls')
            agent.outside = event.value.calls ?? [];
    },
    onRunFinishedEvent: ({ event, agent }) => {
        agent.questions = event.outcome?.type === 'interrupt' ? event.outcome.interrupts : [];
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
 * as it is and follows its run, `abortRun()` ends the run on the server, and questions can
 * be read and answered.
 */
export class HoldfastAgent extends HttpAgent {
    /** Sent with every run, as `forwardedProps.holdfast`. */
    holdfast;
    /** @internal what {@link openQuestions} returns */
    questions = [];
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
        return Object.assign(copy, { holdfast: { ...this.holdfast }, base: this.base, options: this.options, questions: [...this.questions], outside: [...this.outside], stand: this.stand });
    }
    /** Stops watching the run, which goes on: what a page does when it shows another thread. */
    detach() {
        const { onAbort = 'cancel' } = this.options;
        this.options.onAbort = 'detach'; // is read while the abort is told
        this.abortRun();
        this.options.onAbort = onAbort;
    }
    /** The questions that the last run ended with and that are not answered yet. */
    openQuestions() {
        return [...this.questions];
    }
    /**
     * The calls that the thread waits for: the last run has ended, but its work has not. When
     * their results have come, `connectAgent()` shows how it went on.
     */
    outsideCalls() {
        return [...this.outside];
    }
    /**
     * Returns the answer to an open question; pass the answers to all of them to
     * `runAgent({ resume })`. The payload is described in the question's
     * `responseSchema`. It throws if the question is not open.
     */
    answer(question, payload) {
        return { interruptId: this.idOf(question), status: 'resolved', payload };
    }
    /** Returns the answer that declines an open question. It throws if the question is not open. */
    decline(question) {
        return { interruptId: this.idOf(question), status: 'cancelled' };
    }
    idOf(question) {
        const id = typeof question === 'string' ? question : question.id;
        if (this.questions.some((open) => open.id === id))
            return id;
        const open = this.questions.map((q) => q.id).join(', ') || 'none';
        throw new Error(`The question "${id}" is not open (open questions: ${open}).`);
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
