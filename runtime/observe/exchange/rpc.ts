/**
 * Extracts the facts that audit and telemetry need from a client's JSON-RPC message.
 *
 * Depends only on the shape of parsed messages, because the wire module is on a higher layer. Text from clients is
 * redacted and truncated.
 */
import { own } from '../../../schemas/index.ts'
import { redactText, cutBytes } from '../redact.ts'

/** A parsed JSON-RPC message; mcp's Message implements it. */
export interface MessageView {
  readonly kind: 'request' | 'notification' | 'result' | 'error'
  /** Raw JSON text. */
  readonly id: string | undefined
  readonly method: string
}

/**
 * A JSON object whose members are parsed on access; mcp's JsonObject implements it. Methods may throw on malformed
 * members.
 */
export interface ParamsView {
  text(name: string): string | undefined
  raw(name: string): Buffer | undefined
  object(name: string): ParamsView | undefined
}

export type TargetType = 'tool' | 'resource' | 'prompt' | 'endpoint' | 'sse_endpoint'

export interface RpcFacts {
  readonly kind: MessageView['kind']
  readonly id: string | undefined
  readonly method: string
  /** The name or URI in the message. */
  readonly target: string | undefined
  readonly targetType: TargetType
  /** Raw JSON of a tool call's arguments. */
  readonly toolArguments: Buffer | undefined
  readonly protocolVersion: string | undefined
  readonly client: ClientName | undefined
  /** Trace context in `params._meta`. */
  readonly traceparent: string | undefined
  readonly tracestate: string | undefined
}

export interface ClientName {
  readonly name: string | undefined
  readonly version: string | undefined
}

const maxNameBytes = 128
const maxTargetBytes = 512
const clientInfoKey = 'io.modelcontextprotocol/clientInfo'
const protocolVersionKey = 'io.modelcontextprotocol/protocolVersion'

const targets: Readonly<Record<string, readonly [TargetType, 'name' | 'uri']>> = {
  'tools/call': ['tool', 'name'],
  'prompts/get': ['prompt', 'name'],
  'resources/read': ['resource', 'uri'],
  'resources/subscribe': ['resource', 'uri'],
  'resources/unsubscribe': ['resource', 'uri'],
}

/** MCP methods. Metrics use `other` for any other method. */
export const knownMethods: ReadonlySet<string> = new Set([
  ...Object.keys(targets),
  'initialize',
  'ping',
  'tools/list',
  'prompts/list',
  'resources/list',
  'resources/templates/list',
  'completion/complete',
  'logging/setLevel',
  'server/discover',
  'subscriptions/listen',
  'tasks/get',
  'tasks/result',
  'tasks/update',
  'tasks/cancel',
  'notifications/initialized',
  'notifications/cancelled',
  'notifications/progress',
  'notifications/message',
  'notifications/roots/list_changed',
])

/** Returns the method, or `other` when it is not an MCP method. */
export function knownMethod(method: string): string {
  return knownMethods.has(method) ? method : 'other'
}

/** Reads the facts from a message. Never throws, and omits unreadable members. */
export function readRpc(message: MessageView, params: ParamsView | undefined): RpcFacts {
  const { kind, id, method } = message
  const meta = read(() => params?.object('_meta'))
  const [targetType, member] = own(targets, method) ?? ['endpoint', 'name']
  const target = targetType === 'endpoint' ? undefined : read(() => params?.text(member))
  const info =
    method === 'initialize' ? read(() => params?.raw('clientInfo')) : read(() => meta?.raw(clientInfoKey))
  return {
    kind,
    id,
    method: cutBytes(method, maxNameBytes),
    target: target === undefined ? undefined : cutBytes(redactText(target), maxTargetBytes),
    targetType,
    toolArguments: targetType === 'tool' ? read(() => params?.raw('arguments')) : undefined,
    protocolVersion:
      method === 'initialize'
        ? read(() => params?.text('protocolVersion'))
        : read(() => meta?.text(protocolVersionKey)),
    client: clientName(info),
    traceparent: read(() => meta?.text('traceparent')),
    tracestate: read(() => meta?.text('tracestate')),
  }
}

export interface AttributedTool {
  readonly name: string
  /** Raw JSON. */
  readonly arguments: Buffer
}

/** Returns the facts about a call that is attributed to another tool. */
export function withTool(rpc: RpcFacts, { name, arguments: toolArguments }: AttributedTool): RpcFacts {
  return { ...rpc, target: cutBytes(redactText(name), maxTargetBytes), toolArguments }
}

/** Caches parsed client info, keyed by the object that a session keeps. */
const clientNames = new WeakMap<Buffer, ClientName>()
const maxInfoBytes = 16_384

/** Returns the name and version from a raw `Implementation` object. */
export function clientName(info: Buffer | undefined): ClientName | undefined {
  if (!info || info.length > maxInfoBytes) return undefined
  const known = clientNames.get(info)
  if (known) return known
  const name = readClientName(info)
  if (name) clientNames.set(info, name)
  return name
}

function readClientName(info: Buffer): ClientName | undefined {
  const value = read((): unknown => JSON.parse(info.toString()))
  if (typeof value !== 'object' || value === null) return undefined
  const { name, version }: { name?: unknown; version?: unknown } = value
  return { name: clientText(name), version: clientText(version) }
}

function clientText(value: unknown): string | undefined {
  return typeof value === 'string' ? cutBytes(redactText(value), maxNameBytes) : undefined
}

function read<T>(get: () => T | undefined): T | undefined {
  try {
    return get()
  } catch {
    return undefined
  }
}
