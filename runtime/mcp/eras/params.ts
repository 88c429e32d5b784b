/**
 * Translates params for a server. Removes members that concern only the client and Gatehouse, adds members that the
 * server's revision requires, and leaves all other bytes unchanged.
 */
import { type Changes, emptyObject, JsonObject } from '../json/object.ts'
import { metaKey, statelessVersion } from '../protocol.ts'

/** A client's params, and the changes to make before they are sent to the server. */
export interface OutgoingParams {
  /** The client's params, unchanged. */
  readonly params: JsonObject
  readonly changes?: Changes | undefined
  /** False if progress is not reported. The client's token is then removed. */
  readonly progress: boolean
  /** Minimum level of log messages for the client. Undefined if the client receives no log messages. */
  readonly logLevel?: string | undefined
  /** Trace context for `_meta`, which replaces the client's trace context. */
  readonly trace?: Readonly<Record<string, string>> | undefined
}

/** Metadata that a stateless client uses to describe itself. */
const clientMeta: readonly string[] = [
  metaKey.protocolVersion,
  metaKey.clientInfo,
  metaKey.clientCapabilities,
  metaKey.logLevel,
]
/**
 * Members that are removed for a session-era server, unless the changes set them. A stateless client's answers reach the
 * server as responses. The vMCP requests tasks itself.
 */
const sessionRemovals: readonly string[] = ['inputResponses', 'requestState', 'task']

/** Translates params for a session-era server. `token` replaces the client's progress token. */
export function sessionParams(request: OutgoingParams, token: string): Buffer {
  const { params } = request
  const changes: Record<string, Buffer | string | undefined> = { ...request.changes }
  for (const name of sessionRemovals) {
    if (params.raw(name) && !(name in changes)) changes[name] = undefined
  }
  if (params.raw('_meta') || request.trace) {
    const meta = params.object('_meta') ?? emptyObject
    const metaChanges: Record<string, Buffer | string | undefined> = traceMembers(request)
    for (const key of clientMeta) {
      if (meta.raw(key)) metaChanges[key] = undefined
    }
    if (meta.raw('progressToken')) metaChanges['progressToken'] = request.progress ? token : undefined
    apply(changes, meta, metaChanges)
  }
  return Object.keys(changes).length === 0 ? params.bytes : params.with(changes)
}

function apply(
  changes: Record<string, Buffer | string | undefined>,
  meta: JsonObject,
  metaChanges: Changes,
): void {
  if (Object.keys(metaChanges).length === 0) return
  const keepsMembers = meta.names().some((name) => !(name in metaChanges) || metaChanges[name] !== undefined)
  changes['_meta'] = keepsMembers ? meta.with(metaChanges) : undefined
}

/**
 * Returns the trace context as members of `_meta`. Removes the client's tracestate, because the tracestate belongs to a
 * different parent span.
 */
function traceMembers({ trace }: OutgoingParams): Record<string, string | undefined> {
  if (!trace) return {}
  const { traceparent, tracestate } = trace
  return {
    traceparent: JSON.stringify(traceparent),
    tracestate: tracestate === undefined ? undefined : JSON.stringify(tracestate),
  }
}

export interface StatelessIdentity {
  /** The sender's `Implementation`, as raw JSON. */
  readonly info: string
  /** The capabilities that the requesting client has declared, as raw JSON. */
  readonly capabilities: Buffer
}

/**
 * Translates params for a stateless server. Every request to a stateless server must contain the sender's identity and
 * capabilities.
 */
export function statelessParams(request: OutgoingParams, identity: StatelessIdentity, token: string): Buffer {
  const { params, logLevel } = request
  const meta = params.object('_meta') ?? emptyObject
  const metaChanges: Record<string, Buffer | string | undefined> = {
    ...traceMembers(request),
    [metaKey.protocolVersion]: `"${statelessVersion}"`,
    [metaKey.clientInfo]: identity.info,
    [metaKey.clientCapabilities]: identity.capabilities,
    [metaKey.logLevel]: logLevel === undefined ? undefined : JSON.stringify(logLevel),
  }
  if (meta.raw('progressToken')) metaChanges['progressToken'] = request.progress ? token : undefined
  // The stateless era ignores requests for tasks. The server decides whether a call becomes a task.
  const dropped = params.raw('task') ? { task: undefined } : {}
  return params.with({ ...dropped, ...request.changes, _meta: meta.with(metaChanges) })
}
