
import { h, pretty } from './dom.js';
const kindOf = (schema) => {
if (Array.isArray(schema?.enum)) return 'enum';
const type = Array.isArray(schema?.type) ? schema.type.find((t) => t !== 'null') : schema?.type;
return ['string', 'number', 'integer', 'boolean'].includes(type) ? type : 'json';
};
function field(name, schema, required, value) {
const kind = kindOf(schema);
const label = schema?.title ?? name;
let input;
if (kind === 'enum') {
input = h('select', {}, ...schema.enum.map((v, i) => h('option', { value: i }, String(v))));
if (value !== undefined) input.value = String(schema.enum.indexOf(value));
} else if (kind === 'boolean') {
input = h('input', { type: 'checkbox' });
input.checked = value === true;
} else if (kind === 'string' || kind === 'json') {
input = h('textarea', { rows: kind === 'json' ? 4 : 2, required: kind === 'string' && required });
input.value = kind === 'json' ? (value === undefined ? '' : JSON.stringify(value, null, 2)) : value ?? '';
} else {
input = h('input', { type: 'number', step: kind === 'integer' ? 1 : 'any', min: schema.minimum, max: schema.maximum, required });
input.value = value ?? '';
}
return {
el: h(kind === 'boolean' ? 'label.check' : 'label', {}, input, h('span', {}, label + (required ? '' : ' (optional)'))),
focus: () => input.focus(),
read() {
if (kind === 'enum') return schema.enum[Number(input.value)];
if (kind === 'boolean') return input.checked;
if (input.value.trim() === '' && !required) return undefined;
if (kind === 'number' || kind === 'integer') return Number(input.value);
return kind === 'json' ? JSON.parse(input.value) : input.value;
},
};
}
function describe(i, args) {
const schema = i.responseSchema;
const isObject = schema?.properties !== undefined;
const names = isObject ? Object.keys(schema.properties) : [];
const approves = schema ? kindOf(schema.properties?.approved) === 'boolean' : ['confirmation', 'tool_call'].includes(i.reason);
const shown = names.filter((n) => !(approves && n === 'approved'));
const one = shown.length === 1 && !approves ? schema.properties[shown[0]] : isObject ? undefined : schema;
const fields = shown.map((n) => ({
name: n,
...field(n, schema.properties[n], (schema.required ?? []).includes(n), n === 'editedArgs' ? JSON.parse(args || '{}') : schema.properties[n].default),
}));
const single = !isObject && !approves ? field('Answer', schema ?? { type: 'string' }, true, schema?.default) : undefined;
const choices = one && kindOf(one) === 'enum' && one.enum.length <= 6 ? one.enum : [];
return { approves, fields, single, choices, wrap: (v) => (isObject ? { [shown[0]]: v } : v) };
}
function card(i, call, answer) {
const { approves, fields, single, choices, wrap } = describe(i, call?.args);
const problem = h('p.problem', { role: 'alert' });
const resolve = (payload) => answer({ interruptId: i.id, status: 'resolved', payload });
const collect = () => single ? single.read() : Object.fromEntries(fields.map((f) => [f.name, f.read()]).filter(([, v]) => v !== undefined));
const submit = (more) => {
try {
const values = collect();
resolve(more ? { ...values, ...more } : values);
} catch {
problem.textContent = 'This is not valid JSON yet.';
}
};
const button = (name, click, style = '') => h('button' + style, { type: 'button', click }, name);
const buttons = h('div.row');
if (choices.length) for (const c of choices) buttons.append(button(String(c), () => resolve(wrap(c)), '.primary'));
else if (approves) buttons.append(button('Approve', () => submit({ approved: true }), '.primary'), button('Reject', () => resolve({ approved: false })));
else buttons.append(h('button.primary', { type: 'submit' }, 'Answer'));
buttons.append(button('Dismiss', () => answer({ interruptId: i.id, status: 'cancelled' }), '.ghost'));
if (fields.length + (single ? 1 : 0) === 1 && i.message && !approves) (single ?? fields[0]).el.lastChild.className = 'sr';
const form = h('form', { submit: (e) => { e.preventDefault(); submit(approves ? { approved: true } : undefined); } },
h('h3', {}, i.message || (call ? `May ${call.name} run?` : 'An answer is needed')),
i.expiresAt ? h('p.quiet', {}, `Open until ${new Date(i.expiresAt).toLocaleString()}`) : null,
approves && call ? h('pre', { tabindex: 0 }, pretty(call.args ?? '')) : null,
...(choices.length ? [] : [...fields.map((f) => f.el), single?.el]), buttons, problem);
return form;
}
export function questions(box, send) {
let shown = [];
return (view) => {
const open = view.status === 'waiting' ? view.interrupts : [];
if (open === shown || (!open.length && !shown.length)) return;
shown = open;
const answers = new Map();
box.replaceChildren(...open.map((i) => {
const call = view.items.findLast((item) => item.kind === 'call' && item.id === i.toolCallId);
const form = card(i, call, (a) => {
answers.set(a.interruptId, a);
if (answers.size === open.length) return send([...answers.values()]);
form.replaceChildren(h('p.quiet', {}, 'Answered. It is sent with the answers to the other questions.'));
});
return form;
}));
box.hidden = !open.length;
};
}
