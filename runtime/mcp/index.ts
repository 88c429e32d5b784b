/** Public API of the wire module: JSON-RPC, server-sent events and the two protocol eras. No I/O. */
export {
  checkStateless,
  checkStatelessBody,
  type Era,
  eraOf,
  metaOf,
  namedMethods,
  single,
  type StatelessMeta,
} from './era.ts'
export * from './eras/index.ts'
export { type Changes, emptyObject, JsonObject } from './json/object.ts'
export { DuplicateMember, JsonError, scanElements } from './json/scan.ts'
export { inTurns, joined, largeBytes, visitElementsInTurns } from './json/turns.ts'
export { readServerMessage } from './large-message.ts'
export { isBatch, startsAsJson } from './json/start.ts'
export { isSessionLost, maxRefusalBytes, mayEnterNextSession, sessionVerdict } from './lost-session.ts'
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
  assumedSessionVersion,
  eventStreamType,
  headerName,
  jsonType,
  latestSessionVersion,
  logLevels,
  metaKey,
  nativeEra,
  rpcCode,
  sessionVersions,
  statelessVersion,
  allVersions,
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
export { encodeEvent, type EventSourceMessage, keepAliveComment, type SseReader, sseReader } from './sse.ts'
