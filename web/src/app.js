// @ts-check
// The page: connects the session of the open thread with what is on the screen.

import { requester } from './api.js';
import { questions } from './ask.js';
import { conversation } from './chat.js';
import { h, $, uuid } from './dom.js';
import { panel } from './panel.js';
import { empty } from './reduce.js';
import { Session } from './session.js';
import { frames } from './sse.js';
import { drawThreads, threadIn, titleOf } from './threads.js';
import { heading } from './title.js';

const examples = [
  ['plan 4 steps', 'Tools in parallel, a plan in the shared state'],
  ['slow 40', 'A slow answer: reload, or kill the server, in the middle'],
  ['ask me to choose tea, coffee, water', 'A tool that waits for a person'],
];

/** @type {Session | null} */
let session = null;
/** @type {any[]} */
let threads = [];
/** @type {Promise<void> | undefined} */
let asking;

const inspector = panel(readState);
const drawTitle = heading(rename);
const draw = conversation($('log'));
const ask = questions($('ask'), (answers) => session?.answer(answers));
const request = requester(new URL('../', import.meta.url).href, () => sessionStorage.getItem('holdfast.key') ?? '', askKey);

/** @returns {Promise<void>} */
function askKey() {
  asking ??= new Promise((done) => {
    $('key').addEventListener('close', () => {
      sessionStorage.setItem('holdfast.key', $('keytext').value.trim());
      asking = undefined;
      done();
    }, { once: true });
    $('keyhint').textContent = sessionStorage.getItem('holdfast.key') ? 'That key was refused.' : 'It is kept in this tab only, and sent as a bearer token.';
    $('keytext').value = '';
    $('key').showModal();
  });
  return asking;
}
// Without a key there is nothing to see behind the dialog.
$('key').addEventListener('cancel', (/** @type {Event} */ e) => e.preventDefault());

// Drawing: once per frame, however many events came.

let drawn = true;
function changed() {
  if (!drawn) return;
  drawn = false;
  // A page in the background has no frames, but people see its title.
  if (document.hidden) setTimeout(redraw, 250);
  else requestAnimationFrame(redraw);
}

function redraw() {
  drawn = true;
  const view = session?.view ?? empty();
  draw(view.items);
  ask(view);
  inspector.draw(view);
  const busy = session?.busy ?? false;
  const last = view.items.at(-1);
  $('empty').hidden = Boolean(session);
  $('thinking').hidden = !busy || Boolean(last?.open);
  $('send').hidden = busy;
  $('stop').hidden = !busy;
  $('ask').inert = busy;
  $('log').setAttribute('aria-busy', String(busy));
  drawHead(view, busy);
  keepEnd();
}

// A reader at the end stays there; a reader who has scrolled up is left alone.
let atEnd = true;
function keepEnd() {
  const s = $('scroll');
  if (atEnd) s.scrollTop = s.scrollHeight;
  $('latest').hidden = atEnd;
}
function scrolled() {
  const s = $('scroll');
  atEnd = s.scrollHeight - s.scrollTop - s.clientHeight < 60;
  $('latest').hidden = atEnd;
}
function toEnd() {
  atEnd = true;
  keepEnd();
}

const standings = { idle: null, running: ['running', 'running'], waiting: ['waiting', 'waits for you'], failed: ['failed', 'failed'], stopped: ['none', 'stopped'], done: null };

/** @param {import('./reduce.js').View} view @param {boolean} busy */
function drawHead(view, busy) {
  const said = view.items.find((i) => i.role === 'user');
  const title = session ? titleOf(threads, session.thread, said?.text) : 'New chat';
  drawTitle(title, !busy && threads.some((t) => t.id === session?.thread));
  document.title = session ? `${busy ? '● ' : ''}${title} · Holdfast` : 'Holdfast';
  const s = offline ? ['waiting', 'reconnecting…'] : busy ? standings.running : view.outside.length && view.status === 'done' ? ['waiting', 'waits for ' + view.outside] : standings[view.status];
  $('standing').hidden = !s;
  if (s) $('standing').replaceChildren(h('span.dot', { 'data-state': s[0], 'aria-hidden': 'true' }), s[1]);
  const tokens = view.usage.reduce((n, u) => n + (u.totalTokens ?? (u.inputTokens ?? 0) + (u.outputTokens ?? 0)), 0);
  $('usage').textContent = tokens ? ` · ${tokens.toLocaleString('en')} tokens in the last run` : '';
  const can = view.status === 'failed' && !busy;
  const button = $('resume');
  if (can && !button) $('log').after(h('p.resume', { id: 'resume' }, h('button', { type: 'button', click: () => session?.resume() }, 'Continue the run')));
  if (!can) button?.remove();
}

// What screen readers say: starts and ends, never the growing text.

/** @param {any} e @param {import('./reduce.js').View} view */
function announce(e, view) {
  const say = (/** @type {string} */ text) => { $('status').textContent = text; };
  if (e.type === 'RUN_STARTED') say('Assistant is responding.');
  else if (e.type === 'TOOL_CALL_END') say(`Tool ${view.items.find((i) => i.id === e.toolCallId)?.name ?? ''} started.`);
  else if (e.type === 'RUN_ERROR' && e.code !== 'stream_cut') say(e.message);
  else if (e.type === 'RUN_FINISHED') {
    const last = view.items.findLast((i) => i.kind === 'text' && i.role === 'assistant');
    if (view.status === 'waiting') say(`An answer is needed: ${view.interrupts[0]?.message ?? ''}`);
    else say(view.status === 'stopped' ? 'Stopped.' : `${(last?.text ?? '').split('\n\n')[0].slice(0, 400)} Message complete.`);
  }
}

let offline = false;
/** @param {boolean} fine */
function connected(fine) {
  if (offline === !fine) return;
  offline = !fine;
  const [dot, words] = $('connection').children;
  dot.dataset.state = fine ? 'done' : 'waiting';
  words.textContent = fine ? 'Connected' : 'Reconnecting…';
  document.documentElement.toggleAttribute('data-offline', offline);
  changed();
  $('status').textContent = fine ? 'Connected again.' : 'Connection lost, reconnecting.';
}

// Threads.

/** @param {string} thread */
function begin(thread) {
  session?.close();
  inspector.clear();
  problem();
  const own = new Session(thread, {
    request, refused, storage: sessionStorage,
    connection: (state) => connected(state === 'live'),
    changed(event, id) {
      if (event) {
        inspector.add(event, id ?? '');
        announce(event, own.view);
        if (event.type.startsWith('RUN_')) refresh();
      }
      changed();
    },
  });
  session = own;
  return own;
}

function route() {
  const id = threadIn(location.hash);
  document.documentElement.classList.remove('side-open');
  $('open-side').setAttribute('aria-expanded', 'false');
  if (!id) {
    session?.close();
    session = null;
    inspector.clear();
    problem();
  } else if (id !== session?.thread) {
    begin(id).open();
  }
  atEnd = true;
  drawThreads(threads, session?.thread ?? '', Date.now());
  changed();
}

let refreshing = false;
async function refresh() {
  if (refreshing) return;
  refreshing = true;
  const before = session;
  const turn = session?.turn;
  try {
    threads = (await (await request('GET', 'threads?limit=100')).json()).threads;
    if (!session?.busy) connected(true);
    drawThreads(threads, session?.thread ?? '', Date.now());
    changed(); // the title
    // Another page may have started a run on this thread.
    const mine = threads.find((t) => t.id === session?.thread);
    if (mine && session === before && session?.turn === turn && !session?.busy && session?.view.runId && mine.runId !== session.view.runId) session.open();
  } catch (err) {
    if (err instanceof TypeError) connected(false);
  } finally {
    refreshing = false;
  }
}

// Sending.

/** @param {string} text @param {any} [choices] */
function say(text, choices) {
  if (!text.trim() || session?.busy) return;
  problem();
  if (!session) {
    const thread = uuid();
    history.pushState(null, '', '#/t/' + thread);
    begin(thread);
  }
  $('text').value = '';
  grow();
  session?.say(text, choices);
  toEnd();
}

/** Shows an error, or removes it. @param {any} [err] @param {...any} buttons */
function problem(err, ...buttons) {
  $('problem').hidden = !err;
  if (!err) return;
  $('problem').replaceChildren(h('p', {}, h('strong', {}, err.message), ' ', h('code', {}, err.code)), err.hint ? h('p.quiet', {}, err.hint) : '',
    h('div.row', {}, ...buttons, h('button.ghost', { type: 'button', click: () => problem() }, 'Dismiss')));
}

/** @param {any} err @param {any} body */
function refused(err, body) {
  const text = body?.messages?.[0]?.content ?? '';
  if (text && !$('text').value) $('text').value = text; // nothing that the person wrote is lost
  grow();
  const button = (/** @type {string} */ name, /** @type {() => void} */ act) => h('button', { type: 'button', click: () => { problem(); act(); } }, name);
  const ways = {
    mid_execution: button('Continue the unfinished run', () => session?.resume()),
    run_in_progress: button('Watch the run', () => session?.open()),
    interrupted: button('Decline the question and send', () => say($('text').value, { onInterrupted: 'decline' })),
  };
  const way = ways[/** @type {'interrupted'} */ (err.code)];
  // The hint is for programmers; if the page offers a button, that is enough.
  if (way) err.hint = '';
  problem(err, way ?? '');
}

async function stop() {
  $('status').textContent = 'Stopping.';
  try {
    await session?.cancel();
  } catch (err) {
    problem(err instanceof TypeError ? { message: 'The server cannot be reached, so the run could not be stopped.', code: 'network', hint: 'Try again when the page has reconnected.' } : err);
  }
}

/** @param {string} title */
async function rename(title) {
  const thread = session?.thread ?? '';
  try {
    const named = await (await request('PATCH', `threads/${encodeURIComponent(thread)}`, { body: { title } })).json();
    threads = threads.map((t) => (t.id === thread ? named : t));
    drawThreads(threads, session?.thread ?? '', Date.now());
    changed();
  } catch (err) {
    problem(err instanceof TypeError ? { message: 'The server cannot be reached, so the title was not changed.', code: 'network' } : err);
  }
}

/** What the server has stored as the thread's state; nothing before the thread's first run. */
async function readState() {
  if (!session?.view.runId) return undefined;
  const response = await request('GET', `threads/${encodeURIComponent(session.thread)}/state`, { signal: AbortSignal.timeout(10_000) });
  return response.json();
}

/** Shows all events of the run, from the server's log. */
async function wholeRun() {
  const thread = session?.thread;
  if (!session || !thread) return;
  const first = inspector.first();
  const reading = new AbortController();
  /** @type {any[]} */
  const earlier = [];
  try {
    const response = await request('GET', `threads/${encodeURIComponent(thread)}/runs/${encodeURIComponent(session.view.runId)}/events`, { signal: reading.signal });
    for await (const f of frames(/** @type {any} */ (response.body), () => {})) {
      if (!f.data) continue;
      if (first && parseInt(f.id, 10) >= first) break;
      const event = JSON.parse(f.data);
      earlier.push({ event, id: f.id, at: 0 });
      if (event.type === 'RUN_FINISHED' || event.type === 'RUN_ERROR') break;
    }
    if (session?.thread === thread) inspector.prepend(earlier);
  } catch (err) {
    problem(err);
  }
  reading.abort();
  changed();
}

// The composer, keys, and the two side panels.

function grow() {
  const t = $('text');
  t.style.height = 'auto';
  t.style.height = `${Math.min(t.scrollHeight, 240)}px`;
}

/** @param {boolean} open */
function toggleSide(open) {
  document.documentElement.classList.toggle('side-open', open);
  $('open-side').setAttribute('aria-expanded', String(open));
}

function togglePanel() {
  $('panel').hidden = !$('panel').hidden;
  $('open-panel').setAttribute('aria-expanded', String(!$('panel').hidden));
  if (!$('panel').hidden) inspector.opened();
  changed();
}

$('composer').addEventListener('submit', (/** @type {Event} */ e) => { e.preventDefault(); say($('text').value); });
$('text').addEventListener('input', grow);
$('text').addEventListener('keydown', (/** @type {KeyboardEvent} */ e) => {
  // While an input method composes, Enter belongs to it.
  if (e.key !== 'Enter' || e.shiftKey || e.isComposing || e.keyCode === 229) return;
  e.preventDefault();
  say($('text').value);
});
document.addEventListener('keydown', (e) => {
  const typing = e.target instanceof Element && e.target.matches('input, textarea, select');
  if (e.key === 'Escape' && !e.isComposing && !$('key').open) {
    if (document.documentElement.classList.contains('side-open')) {
      toggleSide(false);
      $('open-side').focus();
    } else if (!$('stop').hidden) stop();
  } else if (e.key === '/' && !typing && !e.ctrlKey && !e.metaKey && !e.altKey) {
    e.preventDefault();
    if (innerWidth < 900) toggleSide(true);
    $('filter').focus();
  }
});
$('stop').addEventListener('click', stop);
$('skip').addEventListener('click', (/** @type {Event} */ e) => { e.preventDefault(); $('text').focus(); });
$('new').addEventListener('click', () => { location.hash = '#/'; toggleSide(false); $('text').focus(); });
$('filter').addEventListener('input', () => drawThreads(threads, session?.thread ?? '', Date.now()));
$('open-side').addEventListener('click', () => { toggleSide(true); $('new').focus(); });
$('open-panel').addEventListener('click', togglePanel);
$('close-panel').addEventListener('click', () => { togglePanel(); $('open-panel').focus(); });
$('whole').addEventListener('click', wholeRun);
$('latest').addEventListener('click', toEnd);
$('scroll').addEventListener('scroll', scrolled, { passive: true });
new ResizeObserver(keepEnd).observe($('scroll'));
document.querySelector('main')?.addEventListener('click', (e) => { if (e.target !== $('open-side')) toggleSide(false); });
$('theme').addEventListener('click', () => {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
  root.dataset.theme = dark ? 'light' : 'dark';
  localStorage.setItem('holdfast.theme', root.dataset.theme);
});
$('examples').append(...examples.map(([text, what]) => h('button', { type: 'button', click: () => say(text) }, h('b', {}, text), h('span', {}, what))));

addEventListener('hashchange', route);
addEventListener('online', () => session?.wake());
document.addEventListener('visibilitychange', () => {
  redraw();
  if (document.hidden) return;
  session?.wake();
  refresh();
});
setInterval(() => { if (!document.hidden) refresh(); }, 4000);
route();
refresh();
if (matchMedia('(pointer: fine)').matches) $('text').focus();
