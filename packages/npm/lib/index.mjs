export { BolideError, Clock, RequestError, Server, StartError, findBinary, server, start } from "./index.cjs";
