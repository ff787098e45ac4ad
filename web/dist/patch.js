
function keys(pointer) {
if (pointer === '') return [];
if (pointer[0] !== '/') throw new Error(`"${pointer}" is not a JSON pointer`);
return pointer.slice(1).split('/').map((k) => k.replace(/~1/g, '/').replace(/~0/g, '~'));
}
function index(container, key, adding) {
if (key === '-' && adding) return container.length;
const n = Number(key);
if (!/^(0|[1-9]\d*)$/.test(key) || n > container.length - (adding ? 0 : 1)) throw new Error(`no element ${key}`);
return n;
}
const has = (value, key) => typeof value === 'object' && value !== null && Object.prototype.hasOwnProperty.call(value, key);
function read(doc, path) {
for (const key of path) {
if (Array.isArray(doc)) doc = doc[index(doc, key, false)];
else if (has(doc, key)) doc = doc[key];
else throw new Error(`no member ${key}`);
}
return doc;
}
function edit(doc, path, change) {
const [key, ...rest] = path;
if (typeof doc !== 'object' || doc === null) throw new Error(`nothing holds ${key}`);
const copy = Array.isArray(doc) ? [...doc] : { ...doc };
if (rest.length === 0) {
change(copy, key);
return copy;
}
const child = read(doc, [key]);
define(copy, Array.isArray(copy) ? String(index(copy, key, false)) : key, edit(child, rest, change));
return copy;
}
function define(container, key, value) {
Object.defineProperty(container, key, { value, writable: true, enumerable: true, configurable: true });
}
function add(doc, path, value) {
if (path.length === 0) return value;
return edit(doc, path, (c, k) => {
if (Array.isArray(c)) c.splice(index(c, k, true), 0, value);
else define(c, k, value);
});
}
function remove(doc, path) {
if (path.length === 0) return null;
return edit(doc, path, (c, k) => {
if (Array.isArray(c)) c.splice(index(c, k, false), 1);
else if (has(c, k)) delete c[k];
else throw new Error(`no member ${k}`);
});
}
function replace(doc, path, value) {
if (path.length === 0) return value;
return edit(doc, path, (c, k) => define(c, Array.isArray(c) ? String(index(c, k, false)) : k, value));
}
function equal(a, b) {
if (a === b) return true;
if (typeof a !== 'object' || typeof b !== 'object' || !a || !b || Array.isArray(a) !== Array.isArray(b)) return false;
const names = Object.keys(a);
return names.length === Object.keys(b).length && names.every((k) => has(b, k) && equal(a[k], b[k]));
}
export function apply(doc, patch) {
for (const op of patch) {
const path = keys(op.path);
switch (op.op) {
case 'add': doc = add(doc, path, op.value); break;
case 'remove': read(doc, path); doc = remove(doc, path); break;
case 'replace': read(doc, path); doc = replace(doc, path, op.value); break;
case 'copy': doc = add(doc, path, read(doc, keys(op.from ?? ''))); break;
case 'move': {
const from = keys(op.from ?? '');
if (path.length > from.length && from.every((k, i) => path[i] === k)) throw new Error('a value cannot be moved into itself');
const value = read(doc, from);
doc = add(remove(doc, from), path, value);
break;
}
case 'test': if (!equal(read(doc, path), op.value)) throw new Error(`${op.path} is different`); break;
default: throw new Error(`unknown operation ${op.op}`);
}
}
return doc;
}
