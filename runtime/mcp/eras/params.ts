/**
 * Params on their way to a server: what belongs to the client's own conversation with us is taken out, what the server's
 * revision needs is put in, and everything else keeps its bytes.
 */
import { type Changes, emptyObject, JsonObject } from '../json/object.ts'
import { metaKey, statelessVersion } from '../protocol.ts'

/** A request of a client, and what differs towards the server. */
export interface OutgoingParams {
  /** The client's params, unchanged. */
  readonly params: JsonObject
  readonly changes?: Changes | undefined
  /** False: nobody hears of progress, and the client's token is left out. */
  readonly progress: boolean
  /** Level of the log messages that the client wants; undefined: none. */
  readonly logLevel?: string | undefined
  /** Trace context for `_meta`; replaces the client's own. */
  readonly trace?: Readonly<Record<string, string>> | undefined
}

/** Metadata by which a stateless client describes itself to us. */
const clientMeta: readonly string[] = [
  metaKey.protocolVersion,
  metaKey.clientInfo,
  metaKey.clientCapabilities,
  metaKey.logLevel,
]
/**
 * What does not travel to a session-era server: responses of a stateless client, which become responses there, and the
 * wish for a task, which a server that offers none has to ignore (MCP 2025-11-25, tasks, "Task Support and Handling").
 */
const sessionDrops: readonly string[] = ['inputResponses', 'requestState', 'task']

/** Params for a session-era server. `token` replaces the client's progress token. */
export function sessionParams(request: OutgoingParams, token: string): Buffer {
  const { params } = request
  const changes: Record<string, Buffer | string | undefined> = { ...request.changes }
  for (const name of sessionDrops) {
    if (params.raw(name)) changes[name] = undefined
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
  const left = meta.names().some((name) => !(name in metaChanges) || metaChanges[name] !== undefined)
  changes['_meta'] = left ? meta.with(metaChanges) : undefined
}

/** Trace context as members of `_meta`; a state of the client's own belongs to another parent and goes. */
function traceMembers({ trace }: OutgoingParams): Record<string, string | undefined> {
  if (!trace) return {}
  const { traceparent, tracestate } = trace
  return {
    traceparent: JSON.stringify(traceparent),
    tracestate: tracestate === undefined ? undefined : JSON.stringify(tracestate),
  }
}

export interface StatelessIdentity {
  /** Raw JSON of the `Implementation` that asks. */
  readonly info: string
  /** Raw JSON of the capabilities of the client behind the request. */
  readonly capabilities: Buffer
}

/** Params for a stateless server: every request says who asks and what the requester can do. */
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
  const dropped = params.raw('task') ? { task: undefined } : {}
  return params.with({ ...dropped, ...request.changes, _meta: meta.with(metaChanges) })
}
