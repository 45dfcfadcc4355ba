// The API of stored procedures and triggers: `getContext()`, `__` and `console.log`, built on the functions of the host.
//
// `setup` describes the script: { kind: 'procedure' | 'pre' | 'post', selfLink, altLink, operation, request, response, maxBytes, isLogging }.
// Returns the functions with which the host runs the script: start, step, finish, describe.
(function (native, setup) {
  'use strict';
  const { parse, stringify } = JSON;
  const { apply } = Reflect;
  const { toWellFormed } = String.prototype;
  // More would exceed the stack of the service's engine too.
  const MOST_ARGUMENTS = 65_000;
  const TEXT_HEADERS = ['x-ms-documentdb-script-log-results'];

  const failure = (number, message) => Object.assign(new Error(message), { number, body: message });
  // Quota and usage of a collection, in the service's format. The usage is not counted for a script.
  const QUOTA = 'documentSize=0;documentsSize=10485760;documentsCount=-1;collectionSize=10485760;';
  const USAGE = 'documentSize=0;documentsSize=0;documentsCount=-1;collectionSize=0;';
  const isObject = (value) => typeof value === 'object' && value !== null;

  // ---- request and response

  const tooLarge = (name) =>
    failure(413, `Resulting message would be too large because of "${name}". Return from script with current message and use continuation token to call the script again or modify your script.`);
  const isTooLong = (value) => typeof value === 'string' && value.length > setup.maxBytes;

  // A message is a map of properties; each is { value, isWritable }.
  function messageOf(properties) {
    const message = {};
    const find = (name) => {
      const property = properties.get(String(name));
      if (property === undefined) throw failure(400, `Cannot set new values: ${name}`);
      if (!property.isWritable) throw failure(403, `Not a writable property: ${name}`);
      return property;
    };
    const set = (name, value) => {
      const property = find(name);
      if (isTooLong(value)) throw tooLarge(name);
      property.value = value;
    };
    const append = (name, value) => {
      const property = find(name);
      const { value: current } = property;
      let next = value;
      if (typeof current === 'string') next = current + (isObject(value) ? stringify(value) : String(value));
      else if (current !== undefined && current !== null) next = current + value;
      if (isTooLong(next)) throw tooLarge(name);
      property.value = next;
    };
    message.getValue = (name) => properties.get(String(name))?.value;
    message.setValue = set;
    message.appendValue = append;
    for (const [name, { isWritable }] of properties) {
      if (TEXT_HEADERS.includes(name)) continue;
      message[`get${name}`] = () => properties.get(name).value;
      if (!isWritable) continue;
      message[`set${name}`] = (value) => set(name, value);
      message[`append${name}`] = (value) => append(name, value);
    }
    return Object.freeze(message);
  }

  const property = (value, isWritable) => ({ value, isWritable });
  const requestBody = property(setup.request, setup.kind === 'pre');
  const responseBody = property(setup.response, setup.kind !== 'pre');
  const requestProperties = new Map([['Body', requestBody]]);
  const responseProperties = new Map([['Body', responseBody], [TEXT_HEADERS[0], property('', false)]]);
  if (setup.kind !== 'procedure') requestProperties.set('OperationType', property(setup.operation, false));
  if (setup.kind === 'post') {
    responseProperties.set('OperationType', property(setup.operation, false));
    responseProperties.set('ResourceQuotaCurrentUsage', property(USAGE, false));
    responseProperties.set('MaxResourceQuota', property(QUOTA, false));
  }
  const request = messageOf(requestProperties);
  const response = setup.kind === 'pre' ? undefined : messageOf(responseProperties);

  // ---- operations: queued when accepted, carried out one after the other once the script has returned

  const queue = [];
  let head = 0;
  let tail = 0;

  function enqueue(operation, callback, deliver) {
    if (!native.accepts()) return false;
    queue[tail++] = { operation: stringify(operation), callback, deliver };
    return true;
  }

  function carryOut({ operation, callback, deliver }) {
    const reply = parse(native.operate(operation));
    if (reply.error === undefined) return deliver(reply);
    const error = failure(reply.error.number, reply.error.message);
    if (callback === undefined) throw error;
    callback(error);
  }

  function optional(options, callback) {
    if (callback === undefined && typeof options === 'function') [options, callback] = [undefined, options];
    if (options !== undefined && options !== null && typeof options !== 'object') {
      throw failure(400, 'The options of an operation must be an object.');
    }
    if (callback !== undefined && callback !== null && typeof callback !== 'function') {
      throw failure(400, 'The callback of an operation must be a function.');
    }
    return [options ?? {}, callback ?? undefined];
  }

  const trimmed = (link) => (typeof link === 'string' ? link.replace(/^\/+|\/+$/g, '') : link);
  const [selfLink, altLink] = [trimmed(setup.selfLink), trimmed(setup.altLink)];

  function checkCollection(link) {
    const text = trimmed(link);
    if (text !== selfLink && text !== altLink) {
      throw failure(400, `The link is not the link of the collection that the script runs in. link=\`${String(link)}\``);
    }
  }

  function documentOf(link) {
    const text = trimmed(link);
    for (const [base, by] of [[`${selfLink}/docs/`, 'rid'], [`${altLink}/docs/`, 'id']]) {
      if (typeof text === 'string' && text.startsWith(base) && text.length > base.length) return { by, name: text.slice(base.length) };
    }
    throw failure(400, `The link is not the link of a document in the collection that the script runs in. link=\`${String(link)}\``);
  }

  function bodyOf(body) {
    let value = body;
    if (typeof body === 'string') {
      try { value = parse(body); } catch (error) { throw failure(400, `The document is not valid JSON: ${error.message}`); }
    }
    if (!isObject(value) || Array.isArray(value)) throw failure(400, 'The document must be an object or the JSON text of one.');
    return stringify(value);
  }

  const infoOf = (reply, statusCode) => ({
    statusCode, currentCollectionSizeInMB: USAGE, maxCollectionSizeInMB: QUOTA, notModified: reply.notModified === true, continuation: reply.continuation,
  });
  const text = (value) => (value === undefined || value === null ? undefined : String(value));

  function write(operation, statusCode, callback) {
    return enqueue(operation, callback, (reply) =>
      callback?.(undefined, parse(reply.resource), infoOf(reply, statusCode)));
  }

  function feed(operation, options, callback) {
    const pageSize = options.pageSize === undefined ? undefined : Number(options.pageSize);
    if (pageSize !== undefined && !(Number.isInteger(pageSize) && (pageSize > 0 || pageSize === -1))) {
      throw failure(400, `The page size must be -1 or a positive whole number. pageSize=${String(options.pageSize)}`);
    }
    // An empty continuation begins at the start, like a missing one.
    const continuation = text(options.continuation) || undefined;
    return enqueue({ ...operation, pageSize, continuation }, callback, (reply) =>
      callback?.(undefined, parse(reply.resource), infoOf(reply, 200)));
  }

  const methods = {
    getSelfLink() { return setup.selfLink; },
    getAltLink() { return setup.altLink; },
    readDocument(link, options, callback) {
      [options, callback] = optional(options, callback);
      return enqueue({ kind: 'read', target: documentOf(link), ifNoneMatch: text(options.ifNoneMatch) }, callback, (reply) =>
        callback?.(undefined, reply.notModified ? undefined : parse(reply.resource), infoOf(reply, reply.notModified ? 304 : 200)));
    },
    readDocuments(link, options, callback) {
      checkCollection(link);
      [options, callback] = optional(options, callback);
      return feed({ kind: 'query', query: 'SELECT * FROM root r', parameters: [] }, options, callback);
    },
    queryDocuments(link, filter, options, callback) {
      checkCollection(link);
      [options, callback] = optional(options, callback);
      const query = isObject(filter) ? filter.query : filter;
      const parameters = (isObject(filter) ? filter.parameters : undefined) ?? [];
      if (typeof query !== 'string') throw failure(400, 'The query must be a string or an object with the members `query` and `parameters`.');
      if (!Array.isArray(parameters)) throw failure(400, 'The parameters of a query must be an array.');
      return feed({ kind: 'query', query, parameters }, options, callback);
    },
    createDocument(link, body, options, callback) {
      checkCollection(link);
      [options, callback] = optional(options, callback);
      const isIdNeeded = options.disableAutomaticIdGeneration === true;
      return write({ kind: 'create', document: bodyOf(body), isIdNeeded }, 201, callback);
    },
    upsertDocument(link, body, options, callback) {
      checkCollection(link);
      [options, callback] = optional(options, callback);
      const isIdNeeded = options.disableAutomaticIdGeneration === true;
      return write({ kind: 'upsert', document: bodyOf(body), isIdNeeded, ifMatch: text(options.etag) }, 200, callback);
    },
    replaceDocument(link, body, options, callback) {
      [options, callback] = optional(options, callback);
      return write({ kind: 'replace', target: documentOf(link), document: bodyOf(body), ifMatch: text(options.etag) }, 200, callback);
    },
    deleteDocument(link, options, callback) {
      [options, callback] = optional(options, callback);
      return enqueue({ kind: 'delete', target: documentOf(link), ifMatch: text(options.etag) }, callback, (reply) =>
        callback?.(undefined, infoOf(reply, 204)));
    },
  };
  for (const name of ['createAttachment', 'readAttachment', 'readAttachments', 'queryAttachments', 'replaceAttachment', 'deleteAttachment', 'upsertAttachment']) {
    methods[name] = () => { throw failure(400, `Attachments are not supported. method=${name}`); };
  }
  Object.defineProperty(methods, 'getPartitionKeyDefinition', { value: () => parse(setup.partitionKey) });
  const collection = Object.freeze(methods);

  // ---- the integrated query API of `__`

  const byKey = (key, sign) => (rows) => {
    const keyed = [];
    for (const row of rows) keyed[keyed.length] = [key(row), row];
    keyed.sort(([a], [b]) => (a < b ? -sign : a > b ? sign : 0));
    return keyed.map(([, row]) => row);
  };
  const functionOf = (name, value) => {
    if (typeof value !== 'function') throw failure(400, `The argument of \`${name}\` must be a function.`);
    return value;
  };
  const stages = {
    filter: (predicate) => { functionOf('filter', predicate); return (rows) => rows.filter((row) => predicate(row)); },
    map: (change) => {
      functionOf('map', change);
      return (rows) => rows.map((row) => change(row)).filter((row) => row !== undefined);
    },
    pluck: (name) => (rows) => rows.map((row) => row?.[name]).filter((value) => value !== undefined),
    flatten: (isShallow) => (rows) => rows.flat(isShallow === true ? 1 : Infinity),
    sortBy: (key) => byKey(functionOf('sortBy', key), 1),
    sortByDescending: (key) => byKey(functionOf('sortByDescending', key), -1),
    unwind: (inner, result) => {
      functionOf('unwind', inner);
      const join = result === undefined || result === null ? (row, element) => [row, element] : functionOf('unwind', result);
      return (rows) => rows.flatMap((row) => {
        const elements = inner(row);
        return Array.isArray(elements) ? elements.map((element) => join(row, element)) : [];
      });
    },
  };

  // Reads the documents page by page, or only the requested page, and passes them through the stages.
  function evaluate(list, options, callback) {
    [options, callback] = optional(options, callback);
    const isOnePage = options.pageSize !== undefined || options.continuation !== undefined;
    const documents = [];
    const done = (info) => {
      let rows = documents;
      for (const stage of list) rows = stage(rows);
      if (callback !== undefined) callback(undefined, rows, info);
      else if (response !== undefined) response.appendBody(stringify(rows));
    };
    const next = (continuation) => feed({ kind: 'query', query: 'SELECT * FROM root r', parameters: [] }, { ...options, continuation }, (error, page, info) => {
      if (error !== undefined) {
        if (callback === undefined) throw error;
        return callback(error);
      }
      for (const row of page) documents[documents.length] = row;
      if (isOnePage || info.continuation === undefined) done(info);
      else if (!next(info.continuation)) throw failure(408, 'There is no time left to read the documents.');
    });
    return { isAccepted: next(options.continuation) };
  }

  // Number of arguments of a stage before the options and the callback.
  const argumentsOf = { filter: 1, map: 1, pluck: 1, flatten: 1, sortBy: 1, sortByDescending: 1, unwind: 2 };
  const isStageArgument = (name, value) =>
    name === 'flatten' ? typeof value === 'boolean' : name === 'unwind' ? typeof value === 'function' || value === undefined : true;

  function chainOf(list) {
    const chain = { value: (options, callback) => evaluate(list, options, callback) };
    for (const name of Object.keys(stages)) chain[name] = (...parts) => chainOf([...list, stages[name](...parts)]);
    return chain;
  }

  const shortcut = Object.create(collection);
  shortcut.request = request;
  shortcut.response = response;
  shortcut.chain = () => chainOf([]);
  for (const name of Object.keys(stages)) {
    shortcut[name] = (...parts) => {
      let count = 0;
      while (count < argumentsOf[name] && count < parts.length && isStageArgument(name, parts[count])) {
        // Only the last function of `unwind` may be the callback: a single function after the selector is the result selector.
        count++;
      }
      return evaluate([stages[name](...parts.slice(0, count))], parts[count], parts[count + 1]);
    };
  }

  // ---- the script's globals

  let aborted;
  const context = Object.freeze({
    getCollection: () => collection,
    getRequest: () => request,
    getResponse: () => {
      if (response === undefined) throw failure(400, 'A pre-trigger has no response.');
      return response;
    },
    abort: (error) => {
      aborted ??= { error: error === undefined ? failure(400, 'The script was aborted.') : error };
      throw aborted.error;
    },
  });
  const show = (value) => {
    if (typeof value === 'string') return value;
    return (isObject(value) && !(value instanceof Error) ? stringify(value) : undefined) ?? String(value);
  };
  const log = (format, ...values) => {
    if (!setup.isLogging) return;
    let at = 0;
    let line = show(format);
    if (typeof format === 'string') {
      line = line.replace(/%[sdifjoO%]/g, (mark) => (mark === '%%' ? '%' : at < values.length ? show(values[at++]) : mark));
    }
    for (; at < values.length; at++) line += ` ${show(values[at])}`;
    native.log(apply(toWellFormed, line, []));
  };
  const global = (name, value) => Object.defineProperty(globalThis, name, { value, writable: true, configurable: true, enumerable: false });
  global('getContext', () => context);
  global('__', shortcut);
  global('console', { log, info: log, warn: log, error: log, debug: log });

  // ---- functions that the host calls

  let failed;
  const check = () => {
    if (aborted !== undefined) throw aborted.error;
    if (failed !== undefined) throw failed.error;
  };
  const describe = (error) => {
    try {
      const number = Number.isInteger(error?.number) ? error.number : 0;
      const stack = error instanceof Error ? String(error.stack ?? '') : '';
      const message = error instanceof Error ? String(error) : isObject(error) && error.message !== undefined ? String(error.message) : show(error);
      return stringify({ number, message, stack });
    } catch (other) {
      return stringify({ number: 0, message: 'the error could not be shown', stack: '' });
    }
  };

  // The arguments as `Function.apply` accepts them: an array, null for none, or an object with a length and members by number.
  const listOf = (value) => {
    if (value === null) return [];
    if (!isObject(value)) throw failure(400, 'The arguments must be an array, an object like one, or null.');
    if (Array.isArray(value)) return value;
    const count = Math.min(Math.max(Math.trunc(Number(value.length)) || 0, 0), MOST_ARGUMENTS + 1);
    if (count > MOST_ARGUMENTS) throw failure(400, `There are too many arguments. length=${String(value.length)} limit=${MOST_ARGUMENTS}`);
    return Array.from({ length: count }, (_, at) => value[at]);
  };

  return {
    start(main, argumentsText) {
      const result = apply(main, undefined, listOf(parse(argumentsText)));
      // An asynchronous function reports errors through its promise.
      if (isObject(result) && typeof result.then === 'function') result.then(undefined, (error) => { failed ??= { error }; });
    },
    step() {
      check();
      if (head === tail) return false;
      const next = queue[head];
      queue[head++] = undefined;
      carryOut(next);
      return true;
    },
    finish() {
      check();
      const body = setup.kind === 'pre' ? requestBody.value : responseBody.value;
      const json = stringify(body);
      return json === undefined ? undefined : json;
    },
    describe,
  };
})
