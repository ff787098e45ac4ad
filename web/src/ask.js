// @ts-check
// The open questions of a run: a form for each, made from its schema. AG-UI requires all
// answers in one request, so they are collected until no question is open.

import { h, pretty, spaced } from './dom.js';

/** @typedef {{interruptId: string, status: 'resolved' | 'cancelled', payload?: any}} Answer */

/** @param {any} schema @returns {string} */
const kindOf = (schema) => {
  if (Array.isArray(schema?.enum)) return 'enum';
  const type = Array.isArray(schema?.type) ? schema.type.find((/** @type {string} */ t) => t !== 'null') : schema?.type;
  return ['string', 'number', 'integer', 'boolean'].includes(type) ? type : 'json';
};

/** Codes like "did_not_happen" are words; other values are shown as they are. @param {any} value */
const valueText = (value) => (/^[a-z]+(_[a-z]+)+$/.test(value) ? value.replaceAll('_', ' ') : String(value));

/** Whether there are few enough choices for a button each. @param {any} schema */
const isShort = (schema) => kindOf(schema) === 'boolean' || (kindOf(schema) === 'enum' && schema.enum.length <= 6);

/** @param {any} schema @param {string} kind @param {boolean} required @param {any} value */
function inputFor(schema, kind, required, value) {
  /** @type {any} */
  let input;
  if (kind === 'enum') {
    // If a choice is optional, none is preselected.
    input = h('select', {}, required ? null : h('option', { value: '' }, 'none'),
      ...schema.enum.map((/** @type {any} */ v, /** @type {number} */ i) => h('option', { value: i }, valueText(v))));
    if (value !== undefined) input.value = String(schema.enum.indexOf(value));
  } else if (kind === 'boolean') {
    input = h('input', { type: 'checkbox' });
    input.checked = value === true;
  } else if (kind === 'string' || kind === 'json') {
    input = h('textarea', { rows: kind === 'json' ? 4 : required ? 2 : 1, required: kind === 'string' && required });
    input.value = kind === 'json' ? (value === undefined ? '' : JSON.stringify(value, null, 2)) : value ?? '';
  } else {
    const above = schema.exclusiveMinimum;
    input = h('input', { type: 'number', step: kind === 'integer' ? 1 : 'any', min: schema.minimum ?? above, max: schema.maximum, required });
    input.value = value ?? '';
    const check = () => input.setCustomValidity(input.value !== '' && Number(input.value) <= above ? `It must be more than ${above}.` : '');
    if (above !== undefined) input.addEventListener('input', check);
  }
  return input;
}

/** @param {string} name @param {any} schema @param {boolean} required @param {any} value */
function field(name, schema, required, value) {
  const kind = kindOf(schema);
  const tick = kind === 'boolean';
  const input = inputFor(schema, kind, required, value);
  const untouched = kind === 'json' && input.value !== '' && !required ? input.value : undefined;
  const label = schema?.title ?? (tick && schema.description ? schema.description : spaced(name)) + (required || tick ? '' : ' (optional)');
  const hint = tick && !schema.title ? '' : schema?.description;
  return {
    kind,
    el: h(tick ? 'label.check' : 'label', {}, input, h('span', {}, label, hint ? h('span.quiet', {}, `: ${hint}`) : null)),
    /** Throws if the value is invalid; undefined is left out. */
    read() {
      if (!input.checkValidity()) throw new RangeError(input.validationMessage);
      if (tick) return input.checked;
      // What nobody has changed is not said again: JSON in a browser cannot hold every number.
      if (input.value === untouched || input.value.trim() === '' && !required) return undefined;
      if (kind === 'enum') return schema.enum[Number(input.value)];
      if (kind === 'number' || kind === 'integer') return Number(input.value);
      return kind === 'json' ? JSON.parse(input.value) : input.value;
    },
  };
}

const yesAndNo = new Map([['approved', ['Approve', 'Reject']], ['allow', ['Allow', 'Deny']], ['continue', ['Go on', 'Stop']]]);

/** @param {string} name @param {any} schema */
const choicesOf = (name, schema) => (kindOf(schema) === 'boolean'
  ? (yesAndNo.get(name) ?? ['Yes', 'No']).map((text, i) => ({ text, value: i === 0 }))
  : schema.enum.map((/** @type {any} */ value) => ({ text: valueText(value), value })));

/** The member that the question is about, if buttons can answer it; the others add to it. @param {any} schema */
function askedFor(schema) {
  const names = Object.keys(schema.properties);
  if (kindOf(schema.properties.approved) === 'boolean') return 'approved';
  const needed = names.length === 1 ? names : (schema.required ?? []).filter((/** @type {string} */ n) => names.includes(n));
  return needed.length === 1 && isShort(schema.properties[needed[0]]) ? needed[0] : undefined;
}

/**
 * The parts of a question: buttons, one for each answer, or none; and fields.
 * @param {any} i the interrupt @param {string} [args] of its tool call
 */
function describe(i, args) {
  const schema = i.responseSchema ?? (['confirmation', 'tool_call'].includes(i.reason) ? { properties: { approved: { type: 'boolean' } } } : { type: 'string' });
  if (schema.properties === undefined) {
    if (isShort(schema)) return { choices: choicesOf('', schema), fields: [], whole: true, wrap: (/** @type {any} */ v) => v };
    return { choices: [], fields: [{ name: '', ...field('Answer', schema, true, schema.default) }], whole: true, wrap: (/** @type {any} */ v) => v };
  }
  const asked = askedFor(schema);
  const fields = Object.keys(schema.properties).filter((n) => n !== asked).map((n) => ({
    name: n,
    ...field(n, schema.properties[n], (schema.required ?? []).includes(n), n === 'editedArgs' ? JSON.parse(args || '{}') : schema.properties[n].default),
  }));
  const choices = asked ? choicesOf(asked, schema.properties[asked]) : [];
  return { choices, fields, whole: false, wrap: (/** @type {any} */ v) => ({ [String(asked)]: v }) };
}

/** The values of the fields. A no does not depend on them: it leaves out invalid values and JSON. @param {any[]} fields @param {boolean} no */
function collect(fields, no) {
  /** @type {[string, any][]} */
  const values = [];
  for (const f of fields) {
    if (no && f.kind === 'json') continue;
    try {
      const v = f.read();
      if (v !== undefined) values.push([f.name, v]);
    } catch (err) {
      if (!no) throw err;
    }
  }
  return Object.fromEntries(values);
}

/** What the question is about, if a person should know it. @param {any} i @param {any} call @param {boolean} approves */
function subject(i, call, approves) {
  const { tool, arguments: given, argumentsBytes, rule } = i.metadata ?? {};
  if (!tool && !(approves && call)) return [];
  const text = given === undefined ? call?.args : typeof given === 'string' ? given : JSON.stringify(given);
  return [
    h('p', {}, h('code', {}, tool ?? call.name), rule && rule !== tool ? h('span.quiet', {}, ` by the rule ${rule}`) : null),
    text ? h('pre', { tabindex: 0 }, text.length > 60 ? pretty(text) : text) : argumentsBytes ? h('p.quiet', {}, `Its arguments, ${argumentsBytes} bytes, are not shown here.`) : null,
  ];
}

/** Where the person logs in, if the question is about that. @param {any} i */
function login(i) {
  const url = i.reason === 'holdfast:login_required' && i.metadata?.url;
  return /^https?:/.test(url) ? h('p', {}, h('a', { href: url, target: '_blank', rel: 'noopener noreferrer' }, 'Log in')) : null;
}

/** @param {any} i @param {any} call @param {(a: Answer) => void} answer */
function card(i, call, answer) {
  const { choices, fields, whole, wrap } = describe(i, call?.args);
  const problem = h('p.problem', { role: 'alert' });
  /** @param {any} [choice] */
  const submit = (choice) => {
    const no = choice?.value === false;
    if (!no && !form.reportValidity()) return;
    try {
      const values = collect(fields, no);
      const payload = choice ? wrap(choice.value) : whole ? values[''] : {};
      answer({ interruptId: i.id, status: 'resolved', payload: whole ? payload : { ...values, ...payload } });
    } catch {
      problem.textContent = 'This is not valid JSON yet.';
    }
  };
  /** @param {string} name @param {() => void} click @param {string} [style] */
  const button = (name, click, style = '') => h('button' + style, { type: 'button', click }, name);
  const buttons = h('div.row', {}, ...choices.map((/** @type {any} */ c) => button(c.text, () => submit(c), c.value === false ? '' : '.primary')),
    choices.length ? null : h('button.primary', { type: 'submit' }, 'Answer'),
    button('Dismiss', () => answer({ interruptId: i.id, status: 'cancelled' }), '.ghost'));
  // A single field repeats the question in the heading.
  if (fields.length === 1 && !choices.length && i.message) fields[0].el.lastChild.className = 'sr';
  // Enter in a field chooses nothing.
  const form = h('form', { submit: (/** @type {Event} */ e) => { e.preventDefault(); if (!choices.length) submit(); } },
    h('h3', {}, i.message || (call ? `May ${call.name} run?` : 'An answer is needed')),
    i.expiresAt ? h('p.quiet', {}, `Open until ${new Date(i.expiresAt).toLocaleString()}`) : null,
    login(i),
    ...subject(i, call, choices.some((/** @type {any} */ c) => c.value === true)),
    fields.length ? h('div.fields', {}, ...fields.map((f) => f.el)) : null, buttons, problem);
  return form;
}

/**
 * Returns a function that shows the open questions of a view in box.
 * @param {HTMLElement} box
 * @param {(answers: Answer[]) => void} send
 * @returns {(view: import('./reduce.js').View) => void}
 */
export function questions(box, send) {
  /** @type {any[]} */
  let shown = [];
  return (view) => {
    const open = view.status === 'waiting' ? view.interrupts : [];
    if (open === shown || (!open.length && !shown.length)) return;
    shown = open;
    /** @type {Map<string, Answer>} */
    const answers = new Map();
    box.replaceChildren(...open.map((i) => {
      const call = view.items.findLast((item) => item.kind === 'call' && item.id === i.toolCallId);
      const form = card(i, call, (a) => {
        answers.set(a.interruptId, a);
        if (answers.size === open.length) return send([...answers.values()]);
        form.replaceChildren(h('p.quiet', {}, 'Answered. It will be sent together with the other answers.'));
        box.querySelector('button')?.focus(); // of the next question, since the pressed button is gone
      });
      return form;
    }));
    box.hidden = !open.length;
  };
}
