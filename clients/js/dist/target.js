const runs = /^(.*?)\/(?:runs|agents\/[^/]+\/runs|copilotkit\/agent\/[^/]+\/(?:run|connect))\/?$/;
const stream = /^(.*?)\/threads\/([^/]+)\/stream$/;
const chats = /^(.*?)\/ai-sdk\/[^/]+\/?$/;
const chat = /^(.*?)\/ai-sdk\/[^/]+\/([^/]+)\/stream$/;
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
    if (method === 'POST' && typeof init.body === 'string' && chats.test(pathOf(url)))
        return chatOf(url, init.body);
    const at = base ?? baseOf(url);
    if (method !== 'POST' || at === undefined || typeof init.body !== 'string')
        return undefined;
    const input = parse(init.body);
    if (typeof input?.threadId !== 'string' || typeof input.runId !== 'string')
        return undefined;
    return { url, base: at.replace(/\/$/, ''), thread: input.threadId, run: input.runId, legacy: !input.protocolVersion };
}
const pathOf = (url) => url.replace(/[?#].*$/, '');
function chatOf(url, body) {
    const [, base = ''] = chats.exec(pathOf(url)) ?? [];
    const input = parse(body);
    if (typeof input?.id !== 'string' || typeof input.runId !== 'string')
        return undefined;
    return { url, base, thread: input.id, run: input.runId, legacy: false, ui: true };
}
/**
 * Returns the request of an AI SDK's chat with an id for its run, by which the server knows it if
 * it is sent again; any other request as it is.
 */
export function named(url, init) {
    if (init.method?.toUpperCase() !== 'POST' || typeof init.body !== 'string' || !chats.test(pathOf(url)))
        return init;
    const input = parse(init.body);
    if (typeof input?.id !== 'string' || input.runId !== undefined)
        return init;
    return { ...init, body: JSON.stringify({ ...input, runId: crypto.randomUUID() }) };
}
function attach(url) {
    const [path = '', query = ''] = url.split('?');
    const resumed = chat.exec(path);
    if (resumed) {
        const [, base = '', escaped = ''] = resumed;
        const thread = decode(escaped);
        return thread === undefined ? undefined : { url, base, thread, legacy: false, ui: true };
    }
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
