/**
 * What an MCP request asks the policies: the action, the kind of thing it is done to, and which one.
 *
 * One table for the requests and one for the lists whose items are checked by the same actions.
 * Source: docs/reference/specification/virtual-server.md#authentication, authentication (authorization policies); MCP 2025-11-25 and 2026-07-28, server features.
 */
import type { consoleActions, Uid } from '../../schemas/cedar/index.ts'
import { GatehouseError } from '../../schemas/index.ts'
import { JsonError, JsonObject } from '../mcp/index.ts'

export type Action = 'call_tool' | 'get_prompt' | 'read_resource'

/** What somebody may do in the web console; its policies are a set of their own. */
export type ConsolePolicyAction = (typeof consoleActions)[number]

export const methodOf: Readonly<Record<Action, string>> = {
  call_tool: 'tools/call',
  get_prompt: 'prompts/get',
  read_resource: 'resources/read',
}

interface ActionRow {
  readonly entityType: string
  readonly feature: string
  readonly operation: string
}

interface RequestRow extends ActionRow {
  /** What a refused client is told. */
  readonly refusal: string
}

export const actions = {
  call_tool: {
    entityType: 'Tool',
    feature: 'tool',
    operation: 'call',
    refusal: 'call denied by authorization policy',
  },
  get_prompt: {
    entityType: 'Prompt',
    feature: 'prompt',
    operation: 'get',
    refusal: 'prompt denied by authorization policy',
  },
  read_resource: {
    entityType: 'Resource',
    feature: 'resource',
    operation: 'read',
    refusal: 'read denied by authorization policy',
  },
} as const satisfies Record<Action, RequestRow>

/** What policies are asked about, of clients and of the console. */
export const policyActions: Readonly<Record<Action | ConsolePolicyAction, ActionRow>> = {
  ...actions,
  'console:view': { entityType: 'Console', feature: 'console', operation: 'view' },
  'console:operate': { entityType: 'Console', feature: 'console', operation: 'operate' },
  'console:audit': { entityType: 'Console', feature: 'console', operation: 'audit' },
}

/** One thing that somebody wants to do. */
export interface PolicyRequest {
  readonly action: Action | ConsolePolicyAction
  /** Advertised name of the tool or prompt, exact URI of the resource, or a URI template as it stands; name of the console. */
  readonly id: string
  /** Raw JSON of a tool call's arguments. */
  readonly arguments?: Buffer | undefined
  /** What the tool says of itself. */
  readonly hints?: ToolHints | undefined
  /** Where it comes from; undefined where that is not known. */
  readonly origin?: Origin | undefined
}

/** One thing that a client wants to do. */
export interface AccessRequest extends PolicyRequest {
  readonly action: Action
}

/** What a name of clients leads to. It stays the same whatever clients call it. */
export interface Origin {
  /** Empty for a workflow, which is the gateway's own. */
  readonly backend: string
  /** Name or URI at the backend; the name of a workflow. */
  readonly original: string
  /** The URI template that a resource was found by. */
  readonly template?: string | undefined
}

/** What is known of something that a request names. */
export interface Facts {
  readonly hints: ToolHints
  readonly origin: Origin
}

/** Attributes of a resource that the gateway alone gives. */
export const originAttributes = ['backend', 'original'] as const

/** The parents that a resource has by its origin. */
export function originUids({ action }: PolicyRequest, { backend, original, template }: Origin): Uid[] {
  if (backend === '') return [{ type: 'Workflow', id: original }]
  const type = `Backend${policyActions[action].entityType}`
  const named = [original, ...(template === undefined || template === original ? [] : [template])]
  return [{ type: 'Backend', id: backend }, ...named.map((name) => ({ type, id: `${backend}/${name}` }))]
}

export const hintNames = ['readOnlyHint', 'destructiveHint', 'idempotentHint', 'openWorldHint'] as const
export type ToolHints = Readonly<Partial<Record<(typeof hintNames)[number], boolean>>>

/** The hints among a tool's annotations. */
export function hintsIn(annotations: unknown): ToolHints {
  if (typeof annotations !== 'object' || annotations === null) return {}
  const given = annotations as Readonly<Record<string, unknown>>
  return Object.fromEntries(
    hintNames.filter((hint) => typeof given[hint] === 'boolean').map((hint) => [hint, given[hint]]),
  )
}

export function resourceOf({ action, id }: PolicyRequest): Uid {
  return { type: policyActions[action].entityType, id }
}

export function refusal(action: Action): GatehouseError {
  return new GatehouseError('FORBIDDEN', { detail: actions[action].refusal })
}

export interface ListRow {
  /** Member of the result that holds the items. */
  readonly member: string
  /** Member of an item by which clients name it. */
  readonly key: string
  readonly action: Action
}

/** Lists of which every caller sees the part that is permitted. */
export const lists: Readonly<Record<string, ListRow>> = {
  'tools/list': { member: 'tools', key: 'name', action: 'call_tool' },
  'prompts/list': { member: 'prompts', key: 'name', action: 'get_prompt' },
  'resources/list': { member: 'resources', key: 'uri', action: 'read_resource' },
  'resources/templates/list': { member: 'resourceTemplates', key: 'uriTemplate', action: 'read_resource' },
}

/** Methods that the policies have no say in. Notifications are free as well. */
const freeMethods: ReadonlySet<string> = new Set([
  'initialize',
  'ping',
  'logging/setLevel',
  'server/discover',
  ...Object.keys(lists),
])

/**
 * The questions that a request raises; none when the policies have no say in it, undefined when they do not know the
 * method. Throws INVALID_PARAMS when what they must know cannot be read from the request.
 */
export function accessRequestsOf(method: string, params: JsonObject): readonly AccessRequest[] | undefined {
  switch (method) {
    case 'tools/call':
      return [{ action: 'call_tool', id: text(params, 'name'), arguments: params.raw('arguments') }]
    case 'prompts/get':
      return [{ action: 'get_prompt', id: text(params, 'name') }]
    case 'resources/read':
    case 'resources/subscribe':
    // Its response would tell whether there is such a resource.
    case 'resources/unsubscribe':
      return [{ action: 'read_resource', id: text(params, 'uri') }]
    case 'completion/complete':
      return [completionQuestion(params)]
    case 'subscriptions/listen':
      return subscriptionQuestions(params)
    default:
      return freeMethods.has(method) || method.startsWith('notifications/') ? [] : undefined
  }
}

function completionQuestion(params: JsonObject): AccessRequest {
  const ref = object(params, 'ref')
  const type = ref?.text('type')
  if (ref && type === 'ref/prompt') return { action: 'get_prompt', id: text(ref, 'name') }
  if (ref && type === 'ref/resource') return { action: 'read_resource', id: text(ref, 'uri') }
  throw new GatehouseError('INVALID_PARAMS', {
    detail: 'Invalid params: ref must name a prompt or a resource',
  })
}

function subscriptionQuestions(params: JsonObject): AccessRequest[] {
  const uris = object(params, 'notifications')?.value('resourceSubscriptions') ?? []
  if (!Array.isArray(uris) || !uris.every((uri) => typeof uri === 'string')) {
    throw new GatehouseError('INVALID_PARAMS', {
      detail: 'Invalid params: resourceSubscriptions must be a list of URIs',
    })
  }
  return uris.map((uri: string) => ({ action: 'read_resource', id: uri }))
}

function text(params: JsonObject, member: string): string {
  const value = params.text(member)
  if (value === undefined)
    throw new GatehouseError('INVALID_PARAMS', { detail: `Invalid params: ${member} must be a string` })
  return value
}

function object(params: JsonObject, member: string): JsonObject | undefined {
  try {
    return params.object(member)
  } catch (cause) {
    if (!(cause instanceof JsonError)) throw cause
    throw new GatehouseError('INVALID_PARAMS', {
      detail: `Invalid params: ${member} must be an object whose members have different names`,
      cause,
    })
  }
}
