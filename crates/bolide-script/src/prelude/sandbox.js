// Makes the language safe for scripts: replaces functions that depend on the process, and guards functions that could run for long without being
// interruptible. Called once in every new context with the functions of the host.
(function (native) {
  'use strict';

  // Time comes from the host.
  const NativeDate = Date;
  const HostDate = function Date(...parts) {
    if (new.target === undefined) return new NativeDate(native.now()).toString();
    return Reflect.construct(NativeDate, parts.length === 0 ? [native.now()] : parts, new.target);
  };
  HostDate.prototype = NativeDate.prototype;
  HostDate.now = () => native.now();
  HostDate.parse = NativeDate.parse;
  HostDate.UTC = NativeDate.UTC;
  define(NativeDate.prototype, 'constructor', HostDate);
  define(globalThis, 'Date', HostDate);

  define(Math, 'random', native.random);

  // With `new Error(number, message)` scripts of the service set an error's number.
  const NativeError = Error;
  const NumberedError = function Error(first, second, ...rest) {
    const isNumbered = typeof first === 'number' && second !== undefined;
    const parts = isNumbered ? [second] : arguments.length === 0 ? [] : [first, second, ...rest];
    const error = Reflect.construct(NativeError, parts, new.target ?? NumberedError);
    if (isNumbered) {
      error.number = first;
      error.body = String(second);
    }
    return error;
  };
  for (const name of Object.getOwnPropertyNames(NativeError)) {
    if (!['length', 'name'].includes(name)) {
      Object.defineProperty(NumberedError, name, Object.getOwnPropertyDescriptor(NativeError, name));
    }
  }
  define(NativeError.prototype, 'constructor', NumberedError);
  define(globalThis, 'Error', NumberedError);

  // Built-in functions that loop over an array without checking for interruption: only for short arrays.
  const LONGEST = 10_000_000;
  const isArray = Array.isArray;
  const apply = Reflect.apply;
  const proto = Array.prototype;
  const guard = (name, isReading) => {
    const original = proto[name];
    if (original === undefined) return;
    define(proto, name, { [name](...parts) {
      let array = this;
      if (!isArray(array)) {
        if (array === undefined || array === null || ArrayBuffer.isView(array)) return apply(original, array, parts);
        if (!isReading) throw new TypeError(`Array.prototype.${name} works on arrays only`);
        array = copyOf(array);
      }
      if (array.length > LONGEST) throw new RangeError(`the array is too long. length=${array.length}`);
      return apply(original, array, parts);
    } }[name]);
  };
  const copyOf = (source) => {
    const copy = [];
    const length = Math.min(Number(source.length) || 0, 2 ** 32 - 1);
    for (let at = 0; at < length; at++) if (at in source) copy[at] = source[at];
    return copy;
  };
  for (const name of ['join', 'slice', 'toReversed', 'toSorted', 'toSpliced', 'toString', 'toLocaleString', 'with']) {
    guard(name, true);
  }
  for (const name of ['copyWithin', 'fill', 'pop', 'push', 'reverse', 'shift', 'sort', 'splice', 'unshift']) guard(name, false);
  define(proto, 'concat', function concat(...parts) {
    const all = [];
    for (const part of [this, ...parts]) {
      if (isArray(part)) for (let at = 0; at < part.length; at++) all[all.length] = part[at];
      else all[all.length] = part;
    }
    return all;
  });
  const flatten = (into, from, depth) => {
    for (let at = 0; at < from.length; at++) {
      if (depth > 0 && isArray(from[at])) flatten(into, from[at], depth - 1);
      else if (at in from) into[into.length] = from[at];
    }
    return into;
  };
  define(proto, 'flat', function flat(depth = 1) { return flatten([], this, Number(depth) || 0); });

  // Searching a long text in a long text takes time proportional to the product of their lengths.
  const LONGEST_SEARCH = 1e9;
  for (const name of ['includes', 'indexOf', 'lastIndexOf', 'replace', 'replaceAll', 'split']) {
    const original = String.prototype[name];
    define(String.prototype, name, { [name](...parts) {
      if (typeof this === 'string' && typeof parts[0] === 'string' && this.length * parts[0].length > LONGEST_SEARCH) {
        throw new RangeError('the texts are too long to search one for the other');
      }
      return apply(original, this, parts);
    } }[name]);
  }

  // Removes everything that waits, shares memory or outlives the call.
  for (const name of ['Atomics', 'SharedArrayBuffer', 'FinalizationRegistry', 'WeakRef', 'performance', 'gc', 'navigator', 'queueMicrotask']) {
    delete globalThis[name];
  }

  function define(object, name, value) {
    Object.defineProperty(object, name, { value, writable: true, configurable: true, enumerable: false });
  }
})
