// @ts-check
// The stored states of the middleware: read when something may have changed them, and
// shown below the shared state.

import { h } from './dom.js';

/** @typedef {{key: string, name: string, short: string, version: string, mark: string, text: string}} Entry */

/** Events after which the states may have changed. A delta is not one of them. */
const telling = new Set(['RUN_STARTED', 'STEP_FINISHED', 'TOOL_CALL_RESULT', 'RUN_FINISHED', 'RUN_ERROR']);

/** @param {any} event */
export const mayChangeStates = (event) => telling.has(event.type);

/** A state that is hidden entirely is shown as such, not as JSON. @param {any} value */
const textOf = (value) => (value === '[redacted]' ? value : JSON.stringify(value, null, 2) ?? '');

/**
 * Returns the entries to show, by name; states that were set aside come last.
 * @param {any} held middlewareState of GET /threads/{thread}/state
 * @returns {Entry[]}
 */
export function entries(held) {
  // Without a signature there is no telling which states are known.
  const known = typeof held?.schemaSignature === 'string' ? held.schemaSignature.split(',') : undefined;
  /** @param {string} name @param {number | undefined} version @param {any} value @param {string} mark */
  const entry = (name, version, value, mark) => ({
    key: mark + ' ' + name, name, short: name.split('.').at(-1) || name, version: version === undefined ? '' : `v${version}`, mark, text: textOf(value),
  });
  /** @param {any} of */
  const sorted = (of) => Object.keys(of ?? {}).sort();
  return [
    ...sorted(held?.states).map((n) => entry(n, held.stateVersions?.[n], held.states[n], known && !known.includes(n) ? 'not known here' : '')),
    ...sorted(held?.newerStates).map((n) => entry(n, held.newerStates[n]?.version, held.newerStates[n]?.data, 'set aside')),
  ];
}

/**
 * Returns a function that requests a call of read: soon, one call for all requests until
 * then, at most once a second, and never while an earlier call is running.
 * @param {() => Promise<void>} read
 * @param {{now: () => number, later: (f: () => void, ms: number) => void}} clock
 */
export function sparingly(read, clock) {
  const apart = 1000;
  // What an event announces may be stored a moment later.
  const soon = 100;
  let last = -apart;
  let state = 'idle'; // or planned, working, again
  const plan = () => {
    state = 'planned';
    clock.later(work, Math.max(soon, last + apart - clock.now()));
  };
  async function work() {
    state = 'working';
    last = clock.now();
    await read();
    if (/** @type {string} */ (state) === 'again') plan();
    else state = 'idle';
  }
  return () => {
    if (state === 'idle') plan();
    else if (state === 'working') state = 'again';
  };
}

/** @param {Entry} e */
function row(e) {
  const version = h('span.quiet');
  const mark = h('span.mark');
  const pre = h('pre', { tabindex: 0 });
  const el = h('details.held', {}, h('summary', {}, h('code', { title: e.name }, e.short), version, mark), pre);
  return {
    el,
    /** Keeps what did not change, so that a selection in it stays. @param {Entry} now */
    update(now) {
      for (const [at, text] of [[version, now.version], [mark, now.mark], [pre, now.text]]) if (at.textContent !== text) at.textContent = text;
      pre.classList.toggle('quiet', now.text === '[redacted]');
    },
  };
}

/**
 * Shows the states in list, and problem if they could not be read; hides box if there is
 * neither.
 * @param {() => Promise<any>} load what the server has stored as the thread's state
 * @param {HTMLElement} box @param {HTMLElement} list @param {HTMLElement} problem
 */
export function statesView(load, box, list, problem) {
  /** @type {Map<string, ReturnType<typeof row>>} */
  let rows = new Map();
  let cleared = 0; // so that an answer about the previous thread is not shown

  /** @param {Entry[]} now */
  function show(now) {
    rows = new Map(now.map((e) => [e.key, rows.get(e.key) ?? row(e)]));
    for (const e of now) rows.get(e.key)?.update(e);
    const els = [...rows.values()].map((r) => r.el);
    if (els.some((el, i) => list.children[i] !== el) || list.children.length !== els.length) list.replaceChildren(...els);
  }
  /** @param {boolean} failed */
  function say(failed) {
    problem.hidden = !failed;
    box.hidden = !rows.size && !failed;
  }
  async function read() {
    const at = cleared;
    try {
      const stored = await load();
      if (at !== cleared) return;
      show(entries(stored?.middlewareState));
      say(false);
    } catch {
      if (at === cleared) say(true); // the last states stay visible
    }
  }
  return {
    read: sparingly(read, { now: () => performance.now(), later: setTimeout.bind(window) }),
    clear() {
      cleared++;
      show([]);
      say(false);
    },
  };
}
