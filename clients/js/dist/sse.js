/**
 * Returns a function that takes text as it arrives, split anywhere, and returns the frames
 * that became complete. An unfinished frame is never returned: half an event must not be
 * shown. (HTML standard, "Server-sent events", 9.2.6.)
 */
export function parser() {
    let rest = '';
    let searched = 0; // where the search for a line's end continues
    let started = false;
    let frame = {};
    let data = [];
    function line(text, out) {
        if (text === '') {
            if (data.length > 0)
                frame.data = data.join('\n');
            if (frame.data !== undefined || frame.retry !== undefined)
                out.push(frame);
            frame = {};
            data = [];
            return;
        }
        const colon = text.indexOf(':');
        const name = colon < 0 ? text : text.slice(0, colon);
        let value = colon < 0 ? '' : text.slice(colon + 1);
        if (value.startsWith(' '))
            value = value.slice(1);
        if (colon === 0)
            out.push({ comment: value });
        else if (name === 'data')
            data.push(value);
        else if (name === 'id' && !value.includes('\0'))
            frame.id = value;
        else if (name === 'retry' && /^\d+$/.test(value))
            frame.retry = Number(value);
    }
    return (text) => {
        const out = [];
        rest += text;
        if (!started && rest !== '') {
            started = true;
            if (rest.startsWith('\uFEFF'))
                rest = rest.slice(1);
        }
        const end = /[\r\n]/g;
        let from = 0;
        end.lastIndex = searched;
        for (let at = end.exec(rest); at !== null; at = end.exec(rest)) {
            // A CR at the end of the text may be half of a CRLF.
            if (at[0] === '\r' && at.index + 1 === rest.length)
                break;
            line(rest.slice(from, at.index), out);
            from = at.index + (at[0] === '\r' && rest[at.index + 1] === '\n' ? 2 : 1);
            end.lastIndex = from;
        }
        rest = rest.slice(from);
        searched = rest.endsWith('\r') ? rest.length - 1 : rest.length;
        return out;
    };
}
/** Writes an event as a frame, in the form that the official client reads. */
export function encode(event, id) {
    return `${id === undefined ? '' : `id: ${id}\n`}data: ${JSON.stringify(event)}\n\n`;
}
