import type { ResumeOptions } from './options.js';
export type { Connection, Fetch, ResumeOptions } from './options.js';
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
export declare function resumingFetch(options?: ResumeOptions): (url: string, init?: RequestInit) => Promise<Response>;
