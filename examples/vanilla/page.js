// A chat without a framework, on one agent of a Holdfast server. The address says which
// thread, which server and which agent: ?thread=…&server=…&agent=…
import { HoldfastAgent } from 'holdfast-agent';

const address = new URLSearchParams(location.search);
const server = address.get('server') ?? 'http://localhost:8080';
const isNew = !address.has('thread');
const threadId = address.get('thread') ?? crypto.randomUUID();
address.set('thread', threadId); // a reload shows the same thread
history.replaceState(null, '', `?${address}`);

const agent = new HoldfastAgent({
  url: address.has('agent') ? `${server}/agents/${address.get('agent')}/runs` : `${server}/runs`,
  threadId,
  holdfast: { chat: true }, // Stop, a new message, an edit and another answer never meet an error
  onConnection: (state) => { byId('connection').textContent = state === 'live' ? '' : 'Reconnecting…'; },
});

// The agent's uses of this page.
const tools = {
  paint: {
    description: 'Changes the color of the page.',
    parameters: { type: 'object', properties: { color: { type: 'string' } }, required: ['color'] },
    run({ color }) {
      document.documentElement.style.setProperty('--accent', color);
      return `The page is ${color} now.`;
    },
  },
};
const toolList = Object.entries(tools).map(([name, { description, parameters }]) => ({ name, description, parameters }));

// --- Runs ---------------------------------------------------------------------------------

let running; // a promise while a run is shown
let stopped = false;
let trouble = ''; // what went wrong, for the person in front of the page
let answers = new Map(); // to the open questions, by their ids

/** Starts a run, or with `connect` follows the thread's, and draws what it does. */
function follow(start) {
  [stopped, trouble, answers] = [false, '', new Map()];
  running = start().catch((error) => { trouble ||= error.message; }).then(async () => {
    running = undefined;
    byId('connection').textContent = ''; // also after it was given up
    draw();
    listThreads();
    if (!stopped && answerCalls()) run(); // the agent goes on with what the page's tools said
  });
  draw();
}

const run = (parameters) => follow(() => agent.runAgent({ ...parameters, tools: toolList }));

/** Runs the calls of the page's own tools that have no result yet, if there are any. */
function answerCalls() {
  const open = agent.messages.flatMap((m) => m.toolCalls ?? []).filter((call) => call.function.name in tools && !resultOf(call));
  for (const { id, function: { name, arguments: args } } of open) {
    agent.addMessage({ id: crypto.randomUUID(), role: 'tool', toolCallId: id, content: tools[name].run(JSON.parse(args)) });
  }
  return open.length > 0;
}

async function stop() {
  stopped = true;
  agent.abortRun();
  await running;
}

/** The answer to a question that nobody answers. */
const decline = ({ id }) => ({ interruptId: id, status: 'cancelled' });

/** Sends a message after these; one that was edited keeps its id. Open questions are declined. */
async function say(words, messages = agent.messages, id = crypto.randomUUID()) {
  if (running) await stop();
  const resume = agent.pendingInterrupts.map(decline);
  agent.setMessages([...messages, { id, role: 'user', content: words }]);
  run(resume.length > 0 ? { resume } : {});
}

/** Asks for another answer to the last message. */
function regenerate() {
  agent.setMessages(agent.messages.slice(0, agent.messages.findLastIndex((m) => m.role === 'user') + 1));
  run();
}

/** Notes an answer to a question; all open questions are answered at once. */
function answer(question, given) {
  answers.set(question.id, given);
  const open = agent.pendingInterrupts;
  if (open.every(({ id }) => answers.has(id))) run({ resume: open.map(({ id }) => answers.get(id)) });
  else draw();
}

agent.subscribe({
  onMessagesChanged: () => draw(),
  onRunErrorEvent: ({ event }) => { trouble = event.message; },
});

// --- The page -----------------------------------------------------------------------------

const byId = (id) => document.getElementById(id);
const textOf = ({ content }) => (Array.isArray(content) ? content.map((part) => part.text ?? `[${part.type}]`).join('\n') : content ?? '');
const resultOf = (call) => agent.messages.find((m) => m.role === 'tool' && m.toolCallId === call.id);
const button = (name, press, className = '') => element('button', { type: 'button', textContent: name, onclick: press, className });

function element(tag, properties, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children.filter(Boolean));
  return made;
}

let due = 0;
function draw() {
  due ||= setTimeout(() => {
    due = 0;
    const list = byId('messages');
    const atEnd = list.scrollHeight - list.scrollTop - list.clientHeight < 80;
    list.replaceChildren(...agent.messages.map(messageView), ...(running ? [] : agent.pendingInterrupts.map(questionView)), ...status());
    if (atEnd) list.scrollTop = list.scrollHeight;
    byId('send').textContent = running ? 'Stop' : 'Send';
    document.body.dataset.running = Boolean(running);
  }, 20);
}

function messageView(message) {
  const text = textOf(message);
  switch (message.role) {
    case 'user':
      return element('section', { id: message.id, className: 'user' }, element('p', { textContent: text }), running ? '' : button('Edit', (event) => edit(event.target.parentElement, message), 'quiet'));
    case 'assistant':
      return element('section', { id: message.id, className: 'assistant' }, text && element('p', { textContent: text }), ...(message.toolCalls ?? []).map(callView));
    case 'reasoning':
      return element('details', {}, element('summary', { textContent: 'Thoughts' }), element('p', { textContent: text }));
    default:
      return ''; // the results of tools are on the cards of their calls
  }
}

/** The card of a tool call. */
function callView(call) {
  const result = resultOf(call);
  const state = result ? 'done' : running ? 'running' : 'waiting';
  return element('div', { className: `card ${state}` },
    element('strong', { textContent: call.function.name }), element('code', { textContent: call.function.arguments }),
    result && element('output', { textContent: textOf(result) }));
}

function status() {
  const last = agent.messages.at(-1);
  return [
    trouble && element('p', { className: 'trouble', role: 'alert', textContent: trouble }),
    !running && last && agent.pendingInterrupts.length === 0 && button('Answer again', regenerate, 'quiet again'),
    !last && !running && element('p', { className: 'welcome', textContent: 'What can I do for you?' }),
  ].filter(Boolean);
}

/** Puts a field in the place of a message of the person's. */
function edit(section, message) {
  const field = element('textarea', { value: textOf(message), ariaLabel: 'Edit the message' });
  const before = agent.messages.slice(0, agent.messages.indexOf(message));
  section.replaceChildren(field, button('Cancel', draw, 'quiet'), button('Send again', () => say(field.value, before, message.id)));
  field.focus();
}

/** A question of the agent's: may this call run, which of these, or anything else. */
function questionView(question) {
  if (answers.has(question.id)) return '';
  const { approved, answer: field } = question.responseSchema?.properties ?? {};
  const refuse = button('No answer', () => answer(question, decline(question)), 'quiet');
  const give = (payload) => answer(question, { interruptId: question.id, status: 'resolved', payload });
  const form = element('form', { className: 'card question' }, element('strong', { textContent: question.message }));
  if (approved) {
    approval(form, question, give);
  } else if (field?.enum) {
    form.append(element('div', { className: 'buttons' }, ...field.enum.map((choice) => button(choice, () => give({ answer: choice }))), refuse));
  } else {
    form.append(element('input', { name: 'answer', ariaLabel: 'Your answer', required: true }), element('div', { className: 'buttons' }, element('button', { textContent: 'Answer' }), refuse));
    form.onsubmit = (event) => { event.preventDefault(); give({ answer: form.elements.answer.value }); };
  }
  return form;
}

/** Fields with the arguments of the call, which the person may change before it runs. */
function approval(form, question, give) {
  const call = agent.messages.flatMap((m) => m.toolCalls ?? []).find(({ id }) => id === question.toolCallId);
  const args = JSON.parse(call.function.arguments);
  for (const [name, value] of Object.entries(args)) {
    form.append(element('label', {}, name, element('input', { name, value: typeof value === 'string' ? value : JSON.stringify(value) })));
  }
  form.append(element('div', { className: 'buttons' }, element('button', { textContent: 'Approve' }), button('Refuse', () => give({ approved: false }), 'quiet')));
  form.onsubmit = (event) => {
    event.preventDefault();
    const edited = Object.entries(args).map(([name, value]) => [name, typeof value === 'string' ? form.elements[name].value : JSON.parse(form.elements[name].value)]);
    give({ approved: true, editedArgs: Object.fromEntries(edited) });
  };
}

/** The address of this page for another thread, or for a new one. */
function addressOf(thread) {
  const there = new URLSearchParams(address);
  if (thread) there.set('thread', thread);
  else there.delete('thread');
  return `?${there}`;
}

/** The conversations, newest first; the server makes their titles. */
async function listThreads() {
  const { threads = [] } = await fetch(`${server}/threads`).then((response) => response.json()).catch(() => ({}));
  byId('threads').replaceChildren(...threads.map(({ id, title }) => {
    if (id === threadId) document.title = byId('title').textContent = title;
    return element('a', { href: addressOf(id), textContent: title, ariaCurrent: id === threadId ? 'page' : null });
  }));
}

byId('composer').onsubmit = (event) => {
  event.preventDefault();
  if (event.submitter && running) { // the button, which then means Stop
    stop();
    return;
  }
  const words = byId('words').value.trim();
  byId('words').value = '';
  if (words) say(words);
};
byId('words').onkeydown = (event) => {
  if (event.key === 'Enter' && !event.shiftKey) {
    event.preventDefault();
    byId('composer').requestSubmit();
  }
};
byId('new').href = addressOf(undefined);
if (isNew) draw();
else follow(() => agent.connectAgent()); // shows the thread as it is, and follows its run
listThreads();
