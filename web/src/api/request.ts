// Requests to the server that the page came from: its address, its key, its errors.

import { fields, isFields, number, text, type Fields } from '../log/json';

/** The server's refusal, in its own words. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  /** The HTTP status; 0 if there was no answer. */
  readonly status: number;
  readonly code: string;
  /** The next step. */
  readonly hint: string;
  readonly details: Fields;
  /** Seconds that the server asks to wait; 0 if it does not. */
  readonly retryAfter: number;

  constructor(status: number, error: unknown, retryAfter = 0) {
    const it = fields(error);
    super(text(it['message']) || (status === 0 ? 'The server could not be reached.' : `The server answered ${status}.`));
    this.status = status;
    this.code = text(it['code']) || (status === 0 ? 'unreachable' : `http_${status}`);
    this.hint = text(it['hint']);
    this.details = fields(it['details']);
    this.retryAfter = retryAfter;
  }

  /** Whether the same request may succeed later. */
  get passes(): boolean {
    return this.status === 0 || [429, 502, 503, 504].includes(this.status);
  }
}

/** One request: everything that sending it, or showing it as a command, needs. */
export interface Action {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** Relative to the server's address, without a slash at its beginning. */
  readonly path: string;
  /** Sent as JSON; a text is sent as it is, of the type in `headers`. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

/** The server as the page knows it. */
export interface Server {
  /** Its address, with a slash at its end. */
  readonly base: string;
  /** The headers that every request has: the key, if there is one. */
  headers(): Record<string, string>;
  /** Sends a request. It throws an ApiError for every answer that is not a success. */
  send(action: Action, signal?: AbortSignal): Promise<Response>;
  /** Sends a request and reads its answer. */
  json<T>(action: Action, signal?: AbortSignal): Promise<T>;
  /** For streams: like the global fetch, with the key, and asking for another one at 401. */
  fetch(url: string, init: RequestInit): Promise<Response>;
}

/** Where the key comes from. */
export interface Keys {
  /** The key that is used now; '' without one. */
  current(): string;
  /** Asks for another key than the one that was refused; resolves when there is one to try with. */
  ask(refused: string): Promise<void>;
}

/** No keys at all: 401 is an error like any other. */
export const noKeys: Keys = { current: () => '', ask: () => Promise.reject(new ApiError(401, { code: 'unauthorized', message: 'The server requires a key.' })) };

/** The address of the server of a page: the page is at its root, or under a path prefix. */
export const baseOf = (location: { href: string }): string => new URL('.', location.href.replace(/[?#].*$/, '')).href;

/** The server's words about a request that it has refused. */
export async function errorOf(response: Response): Promise<ApiError> {
  const body: unknown = await response.json().catch(() => undefined);
  return new ApiError(response.status, isFields(body) ? body['error'] : undefined, number(Number(response.headers.get('Retry-After'))) ?? 0);
}

/** A plain 401 is answered with another key. */
async function authorized(keys: Keys, send: (key: string) => Promise<Response>, signal?: AbortSignal | null): Promise<Response> {
  for (;;) {
    const sent = keys.current();
    const response = await send(sent);
    if (response.status !== 401) return response;
    response.body?.cancel().catch(() => {}); // nobody reads it
    if (keys.current() === sent) await keys.ask(sent);
    signal?.throwIfAborted();
  }
}

/** Connects a page to its server. */
export function connect(base: string, keys: Keys = noKeys, via: typeof fetch = (...args) => fetch(...args)): Server {
  const headers = (): Record<string, string> => (keys.current() === '' ? {} : { Authorization: `Bearer ${keys.current()}` });
  const server: Server = {
    base,
    headers,
    async send(action, signal) {
      const init = requestOf(action);
      const response = await authorized(keys, () => via(base + action.path, { ...init, headers: { ...init.headers, ...headers() }, ...(signal === undefined ? {} : { signal }) }), signal).catch((error: unknown) => {
        if (error instanceof ApiError || signal?.aborted) throw error;
        throw new ApiError(0, { message: 'The server could not be reached.', hint: 'It may be down, or just starting. The page asks again by itself.', details: { cause: String(error) } });
      });
      if (response.ok) return response;
      throw await errorOf(response);
    },
    async json<T>(action: Action, signal?: AbortSignal): Promise<T> {
      return (await (await server.send(action, signal)).json()) as T;
    },
    fetch: (url, init) => authorized(keys, () => {
      const all = new Headers(init.headers);
      for (const [name, value] of Object.entries(headers())) all.set(name, value);
      return via(url, { ...init, headers: all, cache: 'no-store', credentials: 'same-origin' });
    }, init.signal),
  };
  return server;
}

/** The request of an action, without the key. */
export function requestOf(action: Action): RequestInit & { method: string; headers: Record<string, string> } {
  const { method, body, headers = {} } = action;
  const type: Record<string, string> = method === 'GET' || (method === 'DELETE' && body === undefined) ? {} : { 'Content-Type': 'application/json' };
  // A deletion may happen while the page goes.
  const init = { method, cache: 'no-store', credentials: 'same-origin', headers: { ...type, ...headers }, ...(method === 'DELETE' && { keepalive: true }) } as const;
  return body === undefined ? init : { ...init, body: typeof body === 'string' ? body : JSON.stringify(body) };
}
