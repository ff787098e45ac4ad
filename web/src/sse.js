// @ts-check
// Server-Sent Events, read from a fetch body. EventSource cannot be used: it sends neither
// a POST nor an Authorization header.

/**
 * @typedef {object} Frame
 * @property {string} id the frame's own id, empty if it has none
 * @property {string} data
 * @property {number} [retry] milliseconds, if the frame says so
 */

/**
 * Returns a function that takes text as it arrives, split anywhere, and returns the frames
 * that became complete. An unfinished frame is never returned: half an event must not be
 * shown.
 * @returns {(text: string) => Frame[]}
 */
export function parser() {
  let rest = '';
  let started = false;
  /** @type {{id: string, data: string[], retry?: number}} */
  let frame = { id: '', data: [] };

  /** @param {string} line @param {Frame[]} out */
  function take(line, out) {
    if (line === '') {
      if (frame.data.length || frame.retry !== undefined) {
        out.push({ id: frame.id, data: frame.data.join('\n'), ...(frame.retry === undefined ? {} : { retry: frame.retry }) });
      }
      frame = { id: '', data: [] };
      return;
    }
    const colon = line.indexOf(':');
    if (colon === 0) return; // a comment, which keeps the connection alive
    const name = colon < 0 ? line : line.slice(0, colon);
    let value = colon < 0 ? '' : line.slice(colon + 1);
    if (value[0] === ' ') value = value.slice(1);
    if (name === 'data') frame.data.push(value);
    else if (name === 'id' && !value.includes('\0')) frame.id = value;
    else if (name === 'retry' && /^\d+$/.test(value)) frame.retry = Number(value);
  }

  return (text) => {
    /** @type {Frame[]} */
    const out = [];
    rest += text;
    if (!started && rest) {
      started = true;
      if (rest[0] === '\uFEFF') rest = rest.slice(1);
    }
    for (;;) {
      const end = rest.search(/[\r\n]/);
      if (end < 0) return out;
      // A CR at the end of the text may be half of a CRLF.
      if (rest[end] === '\r' && end + 1 === rest.length) return out;
      const width = rest[end] === '\r' && rest[end + 1] === '\n' ? 2 : 1;
      take(rest.slice(0, end), out);
      rest = rest.slice(end + width);
    }
  };
}

/**
 * Yields the frames of a body. `alive` is called whenever anything arrives, even a
 * comment.
 * @param {ReadableStream<Uint8Array>} body
 * @param {() => void} alive
 * @returns {AsyncGenerator<Frame>}
 */
export async function* frames(body, alive) {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  const parse = parser();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      alive();
      yield* parse(decoder.decode(value, { stream: true }));
    }
  } finally {
    // The reader may have failed already, and there is nobody left to tell.
    reader.cancel().catch(() => {});
  }
}
