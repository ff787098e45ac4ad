/** Returns the error that `fetch` rejects with when a request is aborted. */
export function abortError(): DOMException {
  return new DOMException('The run was aborted.', 'AbortError');
}

/** Calls a function after a time. Timers take a longer one than they can count for no time at all. */
export function after(ms: number, then: () => void): ReturnType<typeof setTimeout> {
  return setTimeout(then, Math.min(ms, 2 ** 31 - 1));
}

/** Waits; an abort ends the wait, and it is for the caller to look why it ended. */
export function sleep(ms: number, signal?: AbortSignal | null): Promise<void> {
  return new Promise((done) => {
    if (signal?.aborted) return done();
    const finish = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', finish);
      done();
    };
    const timer = after(ms, finish);
    signal?.addEventListener('abort', finish);
  });
}

/** Waits for a promise that does not reject; an abort ends the wait as well. */
export function settled(promise: Promise<void>, signal?: AbortSignal | null): Promise<void> {
  return new Promise((done) => {
    const finish = (): void => {
      signal?.removeEventListener('abort', finish);
      done();
    };
    signal?.addEventListener('abort', finish);
    void promise.then(finish);
  });
}

/** Returns how long an answer asks to wait, in milliseconds; 0 if it does not (RFC 9110, 10.2.3). */
export function retryAfter(response: Response): number {
  const value = response.headers.get('Retry-After');
  if (value === null) return 0;
  const ms = /^\d+$/.test(value) ? Number(value) * 1000 : Date.parse(value) - Date.now();
  return Number.isFinite(ms) ? Math.max(0, ms) : 0;
}

/** Frees the connection of an answer that nobody reads. */
export function discard(response: Response | undefined): void {
  response?.body?.cancel().catch(() => {}); // it may have failed already
}
