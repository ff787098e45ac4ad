// @ts-check
// JSON Patch (RFC 6902) on plain values. It never changes its arguments.

/** @param {string} pointer @returns {string[]} */
function keys(pointer) {
  if (pointer === '') return [];
  if (pointer[0] !== '/') throw new Error(`"${pointer}" is not a JSON pointer`);
  return pointer.slice(1).split('/').map((k) => k.replace(/~1/g, '/').replace(/~0/g, '~'));
}

/** @param {any} container @param {string} key @param {boolean} adding */
function index(container, key, adding) {
  if (key === '-' && adding) return container.length;
  const n = Number(key);
  if (!/^(0|[1-9]\d*)$/.test(key) || n > container.length - (adding ? 0 : 1)) throw new Error(`no element ${key}`);
  return n;
}

/** @param {any} value @param {string} key */
const has = (value, key) => typeof value === 'object' && value !== null && Object.prototype.hasOwnProperty.call(value, key);

/** @param {any} doc @param {string[]} path */
function read(doc, path) {
  for (const key of path) {
    if (Array.isArray(doc)) doc = doc[index(doc, key, false)];
    else if (has(doc, key)) doc = doc[key];
    else throw new Error(`no member ${key}`);
  }
  return doc;
}

/**
 * Returns doc with `change` applied to a copy of the container that path ends in.
 * @param {any} doc @param {string[]} path @param {(container: any, key: string) => void} change
 */
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

// A key such as __proto__ is a member like any other.
/** @param {any} container @param {string} key @param {any} value */
function define(container, key, value) {
  Object.defineProperty(container, key, { value, writable: true, enumerable: true, configurable: true });
}

/** @param {any} doc @param {string[]} path @param {any} value */
function add(doc, path, value) {
  if (path.length === 0) return value;
  return edit(doc, path, (c, k) => {
    if (Array.isArray(c)) c.splice(index(c, k, true), 0, value);
    else define(c, k, value);
  });
}

/** @param {any} doc @param {string[]} path */
function remove(doc, path) {
  if (path.length === 0) return null;
  return edit(doc, path, (c, k) => {
    if (Array.isArray(c)) c.splice(index(c, k, false), 1);
    else if (has(c, k)) delete c[k];
    else throw new Error(`no member ${k}`);
  });
}

/** @param {any} doc @param {string[]} path @param {any} value */
function replace(doc, path, value) {
  if (path.length === 0) return value;
  return edit(doc, path, (c, k) => define(c, Array.isArray(c) ? String(index(c, k, false)) : k, value));
}

/** @param {any} a @param {any} b @returns {boolean} */
function equal(a, b) {
  if (a === b) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || !a || !b || Array.isArray(a) !== Array.isArray(b)) return false;
  const names = Object.keys(a);
  return names.length === Object.keys(b).length && names.every((k) => has(b, k) && equal(a[k], b[k]));
}

/**
 * Applies a patch, all of it or nothing: it throws if an operation does not fit.
 * @param {any} doc
 * @param {{op: string, path: string, from?: string, value?: any}[]} patch
 * @returns {any}
 */
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
