"use strict";

const { findBinary } = require("./binary.cjs");
const { Clock } = require("./clock.cjs");
const { BolideError, RequestError, StartError } = require("./errors.cjs");
const { server } = require("./global.cjs");
const { Server, start } = require("./server.cjs");

module.exports = { BolideError, Clock, RequestError, Server, StartError, findBinary, server, start };
