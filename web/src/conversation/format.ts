// How values are written in the conversation.

/** Indents JSON; anything else stays as it is. Numbers and members keep their form: only the layout changes. */
export function pretty(text: string): string {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'string') return value;
    const laid = JSON.stringify(value, null, 2);
    // A number that a browser cannot hold would be another one.
    return sameDigits(text, laid) ? laid : text;
  } catch {
    return text;
  }
}

const digits = (text: string): string => text.replace(/[\s]/g, '');
const sameDigits = (a: string, b: string): boolean => digits(a).length === digits(b).length || !/\d{16}|[eE]/.test(a);

/** The value of a JSON text, if it is a list or an object, which can be looked at as a tree. */
export function treeOf(text: string): object | undefined {
  if (text.length > 2_000_000 || !/^\s*[[{]/.test(text)) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && sameDigits(text, JSON.stringify(value)) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** A text in one line, with an end that says that there is more. */
export function brief(text: string, most = 160): string {
  const line = text.slice(0, most * 2).replace(/\s+/g, ' ').trim();
  return line.length > most || text.length > most * 2 ? `${line.slice(0, most).trimEnd()}…` : line;
}

/** Arguments in one line: the values of a flat object, with their names. */
export function briefArguments(args: string): string {
  const value = treeOf(args);
  if (value === undefined || Array.isArray(value)) return brief(args);
  const parts = Object.entries(value).map(([name, v]) => `${name}: ${typeof v === 'string' ? v : JSON.stringify(v)}`);
  return brief(parts.join(', '));
}

const moment = new Intl.DateTimeFormat('en', { dateStyle: 'medium', timeStyle: 'short' });

/** A time to come, to the minute. */
export function until(at: string): string {
  const time = new Date(at);
  return Number.isNaN(time.getTime()) ? at : moment.format(time);
}
