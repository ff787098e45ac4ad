// Where one is in Studio, as a hash route: it works below any path prefix, the server need
// not know it, and everything down to a record has an address.
//
//   #/                                        a new thread
//   #/threads/ID                              a thread
//   #/threads/ID/runs/RUN?at=CURSOR&tab=state a run of it, as it was after a record
//   #/questions                               what waits for an answer
//   #/operate/SECTION                         the server
//
// Anything else that somebody types is kept, and said to be nothing.

export const pages = ['thread', 'questions', 'operate'] as const;
/** lost: nothing is at the address. */
export type Page = (typeof pages)[number] | 'lost';

export interface Place {
  page: Page;
  /** The thread; without it, a new one. */
  thread?: string;
  run?: string;
  /** The cursor of a record: everything is shown as it was after it. Without it, as it is now. */
  at?: string;
  /** The tab of the inspector. */
  tab?: string;
  /** The agent of a new thread. */
  agent?: string;
  /** Whose threads an operator reads; without it, one's own. */
  user?: string;
  /** The part of the operate page; of an address at which nothing is, its path. */
  section?: string;
  /** The rest of the address, for panels with something of their own to address. */
  more?: Record<string, string>;
}

const named = ['at', 'tab', 'agent', 'user'] as const;

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part; // a stray % that somebody typed
  }
}

export function parsePlace(hash: string): Place {
  const [path = '', query = ''] = hash.replace(/^#/, '').split(/\?(.*)/s);
  const [first = '', second = '', third = '', fourth = ''] = path.split('/').filter(Boolean).map(decode);
  const place: Place = { page: 'thread' };
  if (first === 'threads' && second) {
    place.thread = second;
    if (third === 'runs' && fourth) place.run = fourth;
  } else if (first === 'questions') {
    place.page = 'questions';
  } else if (first === 'operate') {
    place.page = 'operate';
    if (second) place.section = second;
  } else if (first === 'overview' || first === 'agents' || first === 'settings') {
    // Short forms that people type.
    place.page = 'operate';
    place.section = first;
  } else if (first !== '' && !(first === 'threads' && !second)) {
    place.page = 'lost';
    place.section = path.replace(/^\/+/, '');
  }
  const more: Record<string, string> = {};
  for (const [name, value] of new URLSearchParams(query)) {
    const known = named.find((n) => n === name);
    if (known) place[known] = value;
    else more[name] = value;
  }
  if (Object.keys(more).length > 0) place.more = more;
  return place;
}

export function formatPlace(place: Place): string {
  const path: string[] = [];
  if (place.page === 'lost') return `#/${place.section ?? ''}`;
  if (place.page === 'questions') path.push('questions');
  if (place.page === 'operate') path.push('operate', place.section ?? '');
  if (place.page === 'thread' && place.thread) {
    path.push('threads', place.thread);
    if (place.run) path.push('runs', place.run);
  }
  const query = new URLSearchParams();
  for (const name of named) if (place[name]) query.set(name, place[name]);
  for (const [name, value] of Object.entries(place.more ?? {})) if (value) query.set(name, value);
  const text = query.toString();
  return `#/${path.filter(Boolean).map(encodeURIComponent).join('/')}${text && `?${text}`}`;
}
