/**
 * Public API of the network module: listener, pipeline, body limits, origin check, header tables and outgoing
 * connections.
 */
export { isLoopbackHost, unbracket, addressBehindProxies, setPeerAddress, peerAddress } from './addresses.ts'
export { Breaker, type CircuitState } from './breaker.ts'
export { readBody, rejectBodyByHeaders } from './listener/body.ts'
export { type Caller, identityOf, localIssuer, makeCaller } from './caller.ts'
export { certificateThumbprint } from './listener/client-certificate.ts'
export {
  assertionClient,
  callerFacts,
  clientSubject,
  shortClientId,
  type TokenOrigin,
  workloadSubject,
} from './caller-facts.ts'
export { compressedResponseError } from './content-coding.ts'
export {
  type DispatchController,
  type Dispatcher,
  type DispatchHandler,
  makeDispatcher,
} from './outgoing/dispatcher.ts'
export { type Fetch, type FetchInit, FetchRefusedError, makeFetch } from './outgoing/fetch.ts'
export {
  failureOf,
  networkFailureText,
  knownFailure,
  type NetworkFailure,
  rejectsHost,
} from './outgoing/failure.ts'
export { connectionHeaderNames, repeatedSingleton } from './headers.ts'
export { type InFlightEntry, InFlight } from './in-flight.ts'
export { type ListenerLimits, maxBodyBytes } from './limits.ts'
export { ownMemory } from './load/body-memory.ts'
export { LoadControl } from './load/load.ts'
export type { LoadLimits } from './load/limits.ts'
export { type Overload, trackOverload } from './load/track-overload.ts'
export { Pieces, writeParts } from './pieces.ts'
export {
  type ConnectionSource,
  registerCallerStream,
  registerStream,
  listen,
  type Listener,
  listenerUrl,
  type RequestHandler,
} from './listener/listen.ts'
export { type Log, type LogFields, silentLog, limitToOncePerMinute } from './log.ts'
export { localTokenCheck, type LocalTokens, type TokenDigests, tokenDigest } from './listener/local-tokens.ts'
export { makeOriginCheck, type OriginCheck, originRule, parseOrigin } from './listener/origin.ts'
export { clearCookie, readCookie, setCookie } from './pages/cookies.ts'
export { type Html, html } from './pages/html.ts'
export { type HtmlPage, page } from './pages/page.ts'
export { type CallerStreams, Exchange, pipeline, type Stage } from './pipeline.ts'
export { sendDocument } from './pages/public-document.ts'
export { sendBody, sendJson, sendProblem, sendText, toGatehouseError } from './problem.ts'
export { guardedLookup, type LookupAll } from './outgoing/address-rule.ts'
export type { TlsMaterial } from './outgoing/connector.ts'
export { followCaBundle, followTls, type TlsFiles } from './outgoing/follow-tls.ts'
export {
  directOnly,
  type ProxyEnvironment,
  processProxyEnvironment,
  proxyEnvironment,
  proxyFor,
} from './outgoing/proxy-environment.ts'
export { proxyName } from './outgoing/proxy-server.ts'
export { randomBuffer } from './random.ts'
export {
  clampRetry,
  defaultRetryMs,
  retryAfterOf,
  StreamPace,
  type StreamPaceOptions,
  type StreamWishes,
} from './outgoing/stream-pace.ts'
export {
  abortable,
  type AnySignal,
  withTimeout,
  Deadline,
  LazySignal,
  pause,
  reasonOf,
  signalOf,
} from './waiting.ts'
