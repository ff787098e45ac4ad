const runs = /^(.*?)\/(?:runs|agents\/[^/]+\/runs|copilotkit\/agent\/[^/]+\/(?:run|connect))\/?$/;
const stream = /^(.*?)\/threads\/([^/]+)\/stream$/;
/**
 * Returns the server's address for the URL of its POST route (`…/runs`,
 * `…/agents/{agent}/runs`, `…/copilotkit/agent/{agent}/run`), or undefined if it is not one.
 */
export function baseOf(url) {
    return runs.exec(url.replace(/[?#].*$/, ''))?.[1];
}
/** Returns what a request is about; undefined means that it does not concern a run. */
export function targetOf(url, init, base) {
    const method = init.method?.toUpperCase() ?? 'GET';
    // An answer in one piece has no place to go on from.
    const accepts = new Headers(init.headers).get('Accept');
    if (accepts?.includes('application/json') && !accepts.includes('text/event-stream'))
        return undefined;
    if (method === 'GET')
        return attach(url);
    const at = base ?? baseOf(url);
    if (method !== 'POST' || at === undefined || typeof init.body !== 'string')
        return undefined;
    const input = parse(init.body);
    if (typeof input?.threadId !== 'string' || typeof input.runId !== 'string')
        return undefined;
    return { url, base: at.replace(/\/$/, ''), thread: input.threadId, run: input.runId, legacy: !input.protocolVersion };
}
function attach(url) {
    const [path = '', query = ''] = url.split('?');
    const found = stream.exec(path);
    if (!found)
        return undefined;
    const [, base = '', escaped = ''] = found;
    const thread = decode(escaped);
    if (thread === undefined)
        return undefined;
    return { url, base, thread, legacy: new URLSearchParams(query).get('protocolVersion') === 'none' };
}
function decode(part) {
    try {
        return decodeURIComponent(part);
    }
    catch {
        return undefined; // as below
    }
}
function parse(body) {
    try {
        return JSON.parse(body);
    }
    catch {
        return undefined; // the server will say what is wrong with it
    }
}
const part = encodeURIComponent;
/** Where a thread is. */
export function threadURL(base, thread) {
    return `${base}/threads/${part(thread)}`;
}
/** Where a thread can be attached to. */
export function streamURL(base, thread, legacy) {
    return `${threadURL(base, thread)}/stream${legacy ? '?protocolVersion=none' : ''}`;
}
/** Where a run can be followed from a cursor. */
export function eventsURL(base, thread, run, legacy) {
    return `${base}/threads/${part(thread)}/runs/${part(run)}/events${legacy ? '?protocolVersion=none' : ''}`;
}
/** Where a run can be cancelled. */
export function cancelURL(base, thread, run) {
    return `${base}/threads/${part(thread)}/runs/${part(run)}/cancel`;
}
