import { cancelURL } from './target.js';
import { after, discard, settled, sleep } from './wait.js';
/**
 * How long a request that starts a run is waited for, and then how long the run is asked to end,
 * in milliseconds, before the next message goes its own way.
 */
const bound = 10_000;
/** Ends runs on the server, and knows which threads are still waiting for that. */
export class Cancels {
    #send;
    #waiting = new Map();
    constructor(send) {
        this.#send = send;
    }
    /** Returns when no cancelled run of the thread is still ending, or on an abort. It never rejects. */
    async settled(target, signal) {
        const ending = this.#waiting.get(key(target));
        if (ending !== undefined)
            await settled(ending, signal);
    }
    /**
     * Asks the server to end a run. `started` returns the run's id once the server has answered
     * the request that starts it: a run that does not exist yet cannot be cancelled.
     */
    start(target, headers, started) {
        const ended = this.#cancel(target, headers, started).catch(() => { }).then(() => {
            if (this.#waiting.get(key(target)) === ended)
                this.#waiting.delete(key(target));
        });
        this.#waiting.set(key(target), ended);
    }
    async #cancel(target, headers, started) {
        const answered = new AbortController();
        const run = await Promise.race([started, sleep(bound, answered.signal).then(() => target.run)]);
        answered.abort(); // a timer would keep a Node process alive
        if (run === undefined)
            return;
        const deadline = Date.now() + bound;
        for (let pause = 50; Date.now() < deadline; pause = Math.min(1000, pause * 2)) {
            const status = await this.#ask(cancelURL(target.base, target.thread, run), headers, deadline);
            // 202: it is ending. 5xx and no answer: the server may be restarting.
            if (status !== 202 && status < 500)
                return;
            await sleep(pause);
        }
    }
    async #ask(url, headers, deadline) {
        const late = new AbortController();
        const timer = after(deadline - Date.now(), () => late.abort());
        try {
            // keepalive: the request survives the page that sends it.
            const response = await this.#send(url, { method: 'POST', headers, keepalive: true, signal: late.signal });
            discard(response);
            return response.status;
        }
        catch {
            return 503;
        }
        finally {
            clearTimeout(timer);
        }
    }
}
const key = (target) => `${target.base} ${target.thread}`;
