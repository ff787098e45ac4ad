/** A request that starts or attaches to a run. */
export interface Target {
  url: string;
  /** The server's address, without a slash at its end. */
  base: string;
  thread: string;
  /** The run's id, if the request names it: a POST does, an attach does not. */
  run?: string;
  /** Whether the client speaks the dialect from before AG-UI 1.0. */
  legacy: boolean;
}

const runs = /^(.*?)\/(?:runs|agents\/[^/]+\/runs|copilotkit\/agent\/[^/]+\/(?:run|connect))\/?$/;
const stream = /^(.*?)\/threads\/([^/]+)\/stream$/;

/**
 * Returns the server's address for the URL of its POST route (`…/runs`,
 * `…/agents/{agent}/runs`, `…/copilotkit/agent/{agent}/run`), or undefined if it is not one.
 */
export function baseOf(url: string): string | undefined {
  return runs.exec(url.replace(/[?#].*$/, ''))?.[1];
}

/** Returns what a request is about; undefined means that it does not concern a run. */
export function targetOf(url: string, init: RequestInit, base: string | undefined): Target | undefined {
  const method = init.method?.toUpperCase() ?? 'GET';
  // An answer in one piece has no place to go on from.
  const accepts = new Headers(init.headers).get('Accept');
  if (accepts?.includes('application/json') && !accepts.includes('text/event-stream')) return undefined;
  if (method === 'GET') return attach(url);
  const at = base ?? baseOf(url);
  if (method !== 'POST' || at === undefined || typeof init.body !== 'string') return undefined;
  const input = parse(init.body);
  if (typeof input?.threadId !== 'string' || typeof input.runId !== 'string') return undefined;
  return { url, base: at.replace(/\/$/, ''), thread: input.threadId, run: input.runId, legacy: !input.protocolVersion };
}

function attach(url: string): Target | undefined {
  const [path = '', query = ''] = url.split('?');
  const found = stream.exec(path);
  if (!found) return undefined;
  const [, base = '', escaped = ''] = found;
  const thread = decode(escaped);
  if (thread === undefined) return undefined;
  return { url, base, thread, legacy: new URLSearchParams(query).get('protocolVersion') === 'none' };
}

function decode(part: string): string | undefined {
  try {
    return decodeURIComponent(part);
  } catch {
    return undefined; // as below
  }
}

function parse(body: string): { threadId?: unknown; runId?: unknown; protocolVersion?: unknown } | undefined {
  try {
    return JSON.parse(body);
  } catch {
    return undefined; // the server will say what is wrong with it
  }
}

const part = encodeURIComponent;

/** Where a thread is. */
export function threadURL(base: string, thread: string): string {
  return `${base}/threads/${part(thread)}`;
}

/** Where a thread can be attached to. */
export function streamURL(base: string, thread: string, legacy: boolean): string {
  return `${threadURL(base, thread)}/stream${legacy ? '?protocolVersion=none' : ''}`;
}

/** Where a run can be followed from a cursor. */
export function eventsURL(base: string, thread: string, run: string, legacy: boolean): string {
  return `${base}/threads/${part(thread)}/runs/${part(run)}/events${legacy ? '?protocolVersion=none' : ''}`;
}

/** Where a run can be cancelled. */
export function cancelURL(base: string, thread: string, run: string): string {
  return `${base}/threads/${part(thread)}/runs/${part(run)}/cancel`;
}
