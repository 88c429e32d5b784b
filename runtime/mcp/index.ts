/**
 * Public API of the wire module: JSON-RPC, server-sent events and the translation between the protocol eras. This
 * module performs no I/O.
 */
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
export { type CanonicalOptions, canonicalText } from './json/canonical.ts'
export {
  arrayEnd,
  arrayStart,
  comma,
  emptyObjectBytes,
  isNull,
  objectEnd,
  openArray,
  openObject,
  quoteByte,
} from './json/bytes.ts'
export { type Changes, emptyObject, JsonObject, readAhead } from './json/object.ts'
export { readMembers, scanElements, visitElementsInTurns } from './json/read.ts'
export { DuplicateMember, JsonError } from './json/errors.ts'
export {
  atOnce,
  indexIn,
  inTurns,
  joined,
  largeBytes,
  type TurnWork,
  workOn,
} from './json/turns.ts'
export { nextShare, shareIsOver } from './json/turn-shares.ts'
export { type Handle, TurnQueue } from './turn-queue.ts'
export { readServerMessage, responseIdIn } from './large-message.ts'
export type { EnvelopeRepair, OnRepair } from './json/envelope-repair.ts'
export { largeMemberBytes, type ResultPassage, ResultSplitter } from './result-splitter.ts'
export { isBatch, startsAsJson } from './json/start.ts'
export {
  maxRefusalBytes,
  mayEnterNextSession,
  mayResend,
  refusalHeaders,
  sessionRefusal,
  type SessionRefusal,
  sessionVerdict,
} from './lost-session.ts'
export {
  type ClientMessage,
  clientRules,
  type Message,
  MessageError,
  type PassedMembers,
  protocolError,
  scanMessage,
} from './message.ts'
export {
  argumentHeaders,
  mismatchedHeader,
  type MirroredArgument,
  mirroredArguments,
  writeHeaderValue,
} from './mirrored-headers.ts'
export { checkParamTypes, paramsOf, readLargeMessage } from './param-types.ts'
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
  reservedMetaPrefix,
  updatedMethod,
} from './protocol.ts'
export {
  errorMessage,
  errorObject,
  notificationMessage,
  otherMembers,
  rawErrorMessage,
  requestMessage,
  responseMessage,
  resultMessage,
  resultParts,
} from './write.ts'
export { encodeEvent, eventEnd, eventParts, keepAliveComment, messageHead, onOneLine } from './sse.ts'
export {
  lastEventIdHeader,
  type OnLarge,
  type SseData,
  SseEvent,
  type SseReader,
  sseReader,
} from './sse-reader.ts'
export { MirroredTools } from './mirrored-tools.ts'
export { discover } from './translation/probe.ts'
export type { LinkOutcome, OpenLink, ServerLink } from './translation/link.ts'
export { linkEnded, LinkRequester } from './translation/requester.ts'
export { InitializeFallback } from './translation/initialize-fallback.ts'
export { SessionTranslator } from './translation/session-translator.ts'
export { withClientSubscription, StatelessLink, StatelessRelay } from './translation/stateless-relay.ts'
export type { StatelessReply, StatelessRequest } from './translation/stateless-reply.ts'
export { StatelessTranslator } from './translation/stateless-translator.ts'
