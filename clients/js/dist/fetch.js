import { Cancels } from './cancel.js';
import { Placing } from './placing.js';
import { RunStream } from './runstream.js';
import { named, targetOf } from './target.js';
/**
 * Returns a `fetch` for `new HttpAgent({ url, fetch })`, or for the AI SDK's
 * `new DefaultChatTransport({ api, fetch })`, whose streams survive what happens
 * to connections and servers: it reconnects with the cursor of the last event, so that the
 * client sees one whole run. A stream that cannot be restored ends with a RUN_ERROR whose
 * text is for the person in front of the page; it never fails. Requests that do not concern a
 * run, or that want its answer in one piece (`Accept: application/json`), pass through unchanged,
 * and so do answers that refuse one.
 *
 * A POST may be sent several times. That is safe: the server knows the run by its id, and
 * attaches instead of running it twice.
 */
export function resumingFetch(options = {}) {
    const send = options.fetch ?? ((url, init) => fetch(url, init));
    const cancels = new Cancels(send);
    const placing = new Placing();
    // One note for all runs: one that works ends what one that was given up has said.
    let told = 'live';
    const tell = (state) => {
        if (state === 'live' && told === 'live')
            return;
        told = state;
        options.onConnection?.(state);
    };
    return async (url, given = {}) => {
        const init = named(url, given);
        const target = targetOf(url, init, options.base);
        if (target === undefined)
            return send(url, init);
        init.signal?.throwIfAborted();
        // After Stop, the next message has to wait until the run has ended on the server.
        if (target.run !== undefined)
            await cancels.settled(target, init.signal);
        return new RunStream(target, init, send, cancels, placing, options, tell).open();
    };
}
