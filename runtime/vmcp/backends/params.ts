/**
 * Params on their way to a backend: what belongs to the client's own conversation with us is taken out, what the
 * backend's revision needs is put in, and everything else keeps its bytes.
 */
import { type Changes, JsonObject, META, STATELESS_VERSION } from '../../mcp/index.ts'
import type { Request } from './connection.ts'

const EMPTY: JsonObject = new JsonObject(Buffer.from('{}'))

/** Metadata by which a stateless client describes itself to us. */
const CLIENT_META: readonly string[] = [
  META.protocolVersion,
  META.clientInfo,
  META.clientCapabilities,
  META.logLevel,
]
/**
 * What does not travel to a session-era backend: answers of a stateless client, which become responses there, and the
 * wish for a task, which a server that offers none has to ignore (MCP 2025-11-25, tasks, "Task Support and Handling").
 */
const SESSION_DROPS: readonly string[] = ['inputResponses', 'requestState', 'task']

/** Params for a session-era backend. `token` replaces the client's progress token. */
export function sessionParams(request: Request, token: string): Buffer {
  const { params, relay } = request
  const changes: Record<string, Buffer | string | undefined> = { ...request.changes }
  for (const name of SESSION_DROPS) {
    if (params.raw(name)) changes[name] = undefined
  }
  const meta = params.object('_meta') ?? (request.trace ? EMPTY : undefined)
  if (meta) {
    const metaChanges: Record<string, Buffer | string | undefined> = traceMembers(request)
    for (const key of CLIENT_META) {
      if (meta.raw(key)) metaChanges[key] = undefined
    }
    if (meta.raw('progressToken'))
      metaChanges['progressToken'] = relay?.progressToken === undefined ? undefined : token
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
function traceMembers({ trace }: Request): Record<string, string | undefined> {
  if (!trace) return {}
  const { traceparent, tracestate } = trace
  return {
    traceparent: JSON.stringify(traceparent),
    tracestate: tracestate === undefined ? undefined : JSON.stringify(tracestate),
  }
}

export interface StatelessIdentity {
  /** Raw JSON of our own `Implementation`. */
  readonly info: string
  /** Raw JSON of the capabilities of the client behind the request. */
  readonly capabilities: Buffer
}

/** Params for a stateless backend: every request says who asks and what the asker can do. */
export function statelessParams(request: Request, identity: StatelessIdentity, token: string): Buffer {
  const { params, relay } = request
  const meta = params.object('_meta') ?? EMPTY
  const metaChanges: Record<string, Buffer | string | undefined> = {
    ...traceMembers(request),
    [META.protocolVersion]: `"${STATELESS_VERSION}"`,
    [META.clientInfo]: identity.info,
    [META.clientCapabilities]: identity.capabilities,
    [META.logLevel]: relay?.logLevel === undefined ? undefined : JSON.stringify(relay.logLevel),
  }
  if (meta.raw('progressToken'))
    metaChanges['progressToken'] = relay?.progressToken === undefined ? undefined : token
  const dropped = params.raw('task') ? { task: undefined } : {}
  return params.with({ ...dropped, ...request.changes, _meta: meta.with(metaChanges) })
}
