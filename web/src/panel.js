// @ts-check
// The inspector: every event as it arrived, the shared state, and the states of the
// middleware.

import { h, $, copyButton } from './dom.js';
import { mayChangeStates, statesView } from './states.js';

const most = 2000; // events to keep; the server has all of them

/** @typedef {{event: any, id: string, at: number}} Entry */

/** @param {string} type */
export function family(type) {
  if (type.startsWith('TEXT_')) return 'text';
  if (type.startsWith('TOOL_')) return 'tool';
  if (type.startsWith('REASONING_')) return 'reasoning';
  if (type.startsWith('STATE_') || type === 'MESSAGES_SNAPSHOT') return 'state';
  return type.startsWith('RUN_') || type.startsWith('STEP_') || type.startsWith('SUBAGENT_') ? 'run' : 'other';
}

/** @param {Entry} e @param {Entry | undefined} before */
function row(e, before) {
  const gap = before ? Math.round(e.at - before.at) : 0;
  const box = h('div.json');
  const el = h('details.ev', { toggle: open, 'data-family': family(e.event.type) },
    h('summary', {}, h('span.seq', {}, e.id.split('-')[0] || '–'), h('span.type', {}, e.event.type), h('span.gap', {}, gap ? `+${gap} ms` : '')), box);
  function open() {
    if (!el.open || box.firstChild) return;
    const json = JSON.stringify(e.event, null, 2);
    box.append(copyButton(json), h('pre', { tabindex: 0 }, json));
  }
  return el;
}

/**
 * Connects the inspector with the page.
 * @param {() => Promise<any>} read what the server has stored as the thread's state
 */
export function panel(read) {
  const list = $('events');
  const filter = $('family');
  const followBox = $('follow');
  /** @type {Entry[]} */
  let entries = [];
  let drawn = 0; // how many entries have a row

  const matches = (/** @type {any} */ el) => filter.value === 'all' || el.dataset.family === filter.value;
  filter.addEventListener('change', () => {
    for (const el of list.children) el.hidden = !matches(el);
    toEnd();
  });
  const toEnd = () => { if (followBox.checked) list.scrollTop = list.scrollHeight; };
  // A reader who scrolls up wants to read, not to follow.
  list.addEventListener('wheel', () => { if (list.scrollTop + list.clientHeight < list.scrollHeight - 40) followBox.checked = false; }, { passive: true });
  followBox.addEventListener('change', toEnd);
  new ResizeObserver(toEnd).observe(list);

  function redraw() {
    list.replaceChildren();
    drawn = 0;
  }
  const states = statesView(read, $('middleware'), $('held'), $('unread'));
  return {
    /** @param {any} event @param {string} id */
    add(event, id) {
      entries.push({ event, id, at: performance.now() });
      if (!$('panel').hidden && mayChangeStates(event)) states.read();
    },
    /** Reads the states, which are not read while the panel is closed. */
    opened: states.read,
    clear() {
      entries = [];
      redraw();
      states.clear();
    },
    /** The number of the first kept event that has one; 0 if there is none. */
    first: () => parseInt(entries.find((e) => e.id)?.id ?? '0', 10),
    /** Replaces everything before the first numbered event. @param {Entry[]} earlier */
    prepend(earlier) {
      const at = entries.findIndex((e) => e.id);
      entries = [...earlier, ...(at < 0 ? [] : entries.slice(at))];
      redraw();
    },
    /** @param {import('./reduce.js').View} view */
    draw(view) {
      if ($('panel').hidden) return;
      if (entries.length > most) {
        entries = entries.slice(-most);
        redraw();
      }
      const rows = entries.slice(drawn).map((e, i) => {
        const el = row(e, entries[drawn + i - 1]);
        el.hidden = !matches(el);
        return el;
      });
      drawn = entries.length;
      if (rows.length) {
        list.append(...rows);
        toEnd();
      }
      $('count').textContent = `${entries.length} events`;
      const state = view.state === undefined ? 'No shared state yet.' : JSON.stringify(view.state, null, 2);
      if ($('state').textContent !== state) $('state').textContent = state;
    },
  };
}
