/** Returns the error that `fetch` rejects with when a request is aborted. */
export function abortError(): DOMException {
  return new DOMException('The run was aborted.', 'AbortError');
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
    const timer = setTimeout(finish, ms);
    signal?.addEventListener('abort', finish);
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
