// @ts-check
// The states of the middleware, as the thread holds them: read when something may
// have changed them, and shown below the shared state.

import { h } from './dom.js';

/** @typedef {{key: string, name: string, short: string, version: string, mark: string, text: string}} Entry */

/** Some events after which the states may be others. A delta is none. */
const telling = new Set(['RUN_STARTED', 'STEP_FINISHED', 'TOOL_CALL_RESULT', 'RUN_FINISHED', 'RUN_ERROR']);

/** @param {any} event */
export const mayChangeStates = (event) => telling.has(event.type);

/** A state that is hidden as a whole is said so, not quoted. @param {any} value */
const textOf = (value) => (value === '[redacted]' ? value : JSON.stringify(value, null, 2) ?? '');

/**
 * Returns what there is to show, by name; states that were set aside come last.
 * @param {any} held middlewareState of GET /threads/{thread}/state
 * @returns {Entry[]}
 */
export function entries(held) {
  // Without a signature nothing is said about what is known.
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
 * Returns a function that asks for read to be called: soon, once for all that ask
 * until then, at most once a second, and never while it is at work.
 * @param {() => Promise<void>} read
 * @param {{now: () => number, later: (f: () => void, ms: number) => void}} clock
 */
export function sparingly(read, clock) {
  const apart = 1000;
  // What an event announces may be stored a moment after it.
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
    /** What did not change stays, so that a selection in it stays. @param {Entry} now */
    update(now) {
      for (const [at, text] of [[version, now.version], [mark, now.mark], [pre, now.text]]) if (at.textContent !== text) at.textContent = text;
      pre.classList.toggle('quiet', now.text === '[redacted]');
    },
  };
}

/**
 * Shows the states in list, and that they could not be read in problem; box is
 * hidden while there is neither.
 * @param {() => Promise<any>} load what the server has stored as the thread's state
 * @param {HTMLElement} box @param {HTMLElement} list @param {HTMLElement} problem
 */
export function statesView(load, box, list, problem) {
  /** @type {Map<string, ReturnType<typeof row>>} */
  let rows = new Map();
  let cleared = 0; // an answer about the thread before is not shown

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
      if (at === cleared) say(true); // the last ones stay
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
