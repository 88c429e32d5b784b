/** Public API of the wire module: JSON-RPC, server-sent events and the two protocol eras. No I/O. */
export {
  checkStateless,
  checkStatelessBody,
  type Era,
  eraOf,
  metaOf,
  NAMED_METHODS,
  single,
  type StatelessMeta,
} from './era.ts'
export * from './eras/index.ts'
export { type Changes, JsonObject } from './json-object.ts'
export { DuplicateMember, JsonError, scanElements } from './json-scan.ts'
export { inTurns, joined, LARGE_BYTES, visitElementsInTurns } from './json-turns.ts'
export { readServerMessage } from './large-message.ts'
export { isBatch, startsAsJson } from './json-start.ts'
export { isSessionLost, MAX_REFUSAL_BYTES, mayEnterNextSession, sessionVerdict } from './lost-session.ts'
export { type Message, MessageError, paramsOf, scanClientMessage, scanMessage } from './message.ts'
export {
  argumentHeaders,
  disagreeingArgument,
  type MirroredArgument,
  mirroredArguments,
  writeHeaderValue,
} from './mirrored-headers.ts'
export { checkParamTypes } from './param-types.ts'
export {
  ASSUMED_SESSION_VERSION,
  EVENT_STREAM_TYPE,
  HEADER,
  JSON_TYPE,
  LATEST_SESSION_VERSION,
  LOG_LEVELS,
  META,
  NATIVE_ERA,
  RPC,
  SESSION_VERSIONS,
  STATELESS_VERSION,
  SUPPORTED_VERSIONS,
} from './protocol.ts'
export {
  errorMessage,
  errorObject,
  notificationMessage,
  rawErrorMessage,
  requestMessage,
  resultMessage,
  resultParts,
} from './write.ts'
export { encodeEvent, type EventSourceMessage, KEEP_ALIVE, type SseReader, sseReader } from './sse.ts'
