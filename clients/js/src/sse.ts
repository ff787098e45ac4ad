/** One block of a Server-Sent Events stream. */
export interface Frame {
  /** The frame's own id, if it has one. */
  id?: string;
  /** The event; absent in a frame that only sets something. */
  data?: string;
  /** Milliseconds to wait before reconnecting. */
  retry?: number;
  /** The text of a comment, which only keeps the connection alive. */
  comment?: string;
}

/**
 * Returns a function that takes text as it arrives, split anywhere, and returns the frames
 * that became complete. An unfinished frame is never returned: half an event must not be
 * shown. (HTML standard, "Server-sent events", 9.2.6.)
 */
export function parser(): (text: string) => Frame[] {
  let unfinished: string[] = []; // the pieces of a line whose end has not come
  let halfEnd = false; // whether they end with a CR, which may be half of a CRLF
  let started = false;
  let frame: Frame = {};
  let data: string[] = [];

  function line(text: string, out: Frame[]): void {
    if (text === '') {
      if (data.length > 0) frame.data = data.join('\n');
      if (frame.data !== undefined || frame.retry !== undefined) out.push(frame);
      frame = {};
      data = [];
      return;
    }
    const colon = text.indexOf(':');
    const name = colon < 0 ? text : text.slice(0, colon);
    let value = colon < 0 ? '' : text.slice(colon + 1);
    if (value.startsWith(' ')) value = value.slice(1);
    if (colon === 0) out.push({ comment: value });
    else if (name === 'data') data.push(value);
    else if (name === 'id' && !value.includes('\0')) frame.id = value;
    else if (name === 'retry' && /^\d+$/.test(value)) frame.retry = Number(value);
  }

  return (text) => {
    if (!started && text !== '') {
      started = true;
      if (text.startsWith('\uFEFF')) text = text.slice(1);
    }
    unfinished.push(text);
    const end = /[\r\n]/g;
    // The pieces of a long line are put together once: it may have megabytes, in small pieces.
    if (!halfEnd && !end.test(text)) return [];
    const out: Frame[] = [];
    const rest = unfinished.join('');
    let from = 0;
    end.lastIndex = 0;
    for (let at = end.exec(rest); at !== null; at = end.exec(rest)) {
      if (at[0] === '\r' && at.index + 1 === rest.length) break;
      line(rest.slice(from, at.index), out);
      from = at.index + (at[0] === '\r' && rest[at.index + 1] === '\n' ? 2 : 1);
      end.lastIndex = from;
    }
    unfinished = [rest.slice(from)];
    halfEnd = rest.endsWith('\r') && from < rest.length;
    return out;
  };
}

/** Writes an event as a frame, in the form that the official client reads. */
export function encode(event: unknown, id?: string): string {
  return `${id === undefined ? '' : `id: ${id}\n`}data: ${JSON.stringify(event)}\n\n`;
}
