/**
 * Maps an MCP request to policy queries: the action, and the type and id of its target.
 *
 * One table contains requests. Another table contains the lists, with the actions that apply to their items.
 * Source: docs/reference/specification/virtual-server.md#authentication, authentication (authorization policies); MCP
 * 2025-11-25 and 2026-07-28, server features.
 */
import type { consoleActions, Uid } from '../../schemas/cedar/index.ts'
import { fieldsOf, GatehouseError, listOf } from '../../schemas/index.ts'
import { JsonError, JsonObject } from '../mcp/index.ts'

export type Action = 'call_tool' | 'get_prompt' | 'read_resource' | 'get_skill'

/** Actions in the web console, which have separate policies. */
export type ConsolePolicyAction = (typeof consoleActions)[number]

export const methodOf: Readonly<Record<Action, string>> = {
  call_tool: 'tools/call',
  get_prompt: 'prompts/get',
  read_resource: 'resources/read',
  get_skill: 'skills/get',
}

interface ActionRow {
  readonly entityType: string
  readonly feature: string
  readonly operation: string
}

interface RequestRow extends ActionRow {
  /** Error message for a client whose request is denied. */
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
  get_skill: {
    entityType: 'Skill',
    feature: 'skill',
    operation: 'get',
    refusal: 'skill denied by authorization policy',
  },
} as const satisfies Record<Action, RequestRow>

/** Client and console actions that policies decide on. */
export const policyActions: Readonly<Record<Action | ConsolePolicyAction, ActionRow>> = {
  ...actions,
  'console:view': { entityType: 'Console', feature: 'console', operation: 'view' },
  'console:operate': { entityType: 'Console', feature: 'console', operation: 'operate' },
  'console:audit': { entityType: 'Console', feature: 'console', operation: 'audit' },
}

/** A request that policies decide on. */
export interface PolicyRequest {
  readonly action: Action | ConsolePolicyAction
  /**
   * Advertised name of the tool or prompt, exact URI of the resource, URI of the skill, literal URI template, or name of
   * the console.
   */
  readonly id: string
  /** A tool call's arguments as raw JSON. */
  readonly arguments?: Buffer | undefined
  /** The tool's hints. */
  readonly hints?: ToolHints | undefined
  /** The target's origin; undefined when unknown. */
  readonly origin?: Origin | undefined
}

/** A client's request that policies decide on. */
export interface AccessRequest extends PolicyRequest {
  readonly action: Action
}

/** The backend and the item to which a name refers, regardless of the name that clients see. */
export interface Origin {
  /** Name of the backend; empty for a workflow, which belongs to the gateway. */
  readonly backend: string
  /** Name or URI at the backend, or a workflow name. */
  readonly original: string
  /** The URI template that matched a resource. */
  readonly template?: string | undefined
}

/** Facts about the target of a request. */
export interface Facts {
  readonly hints: ToolHints
  readonly origin: Origin
}

/** Resource attributes that only the gateway sets. */
export const originAttributes = ['backend', 'original'] as const

/** Returns the parents of a resource that are derived from its origin. */
export function originUids({ action }: PolicyRequest, { backend, original, template }: Origin): Uid[] {
  if (backend === '') return [{ type: 'Workflow', id: original }]
  const type = `Backend${policyActions[action].entityType}`
  const named = [original, ...(template === undefined || template === original ? [] : [template])]
  return [{ type: 'Backend', id: backend }, ...named.map((name) => ({ type, id: `${backend}/${name}` }))]
}

const annotationHints = ['readOnlyHint', 'destructiveHint', 'idempotentHint', 'openWorldHint'] as const
/** Facts about a tool that policies can read. `appOnly` is true for a tool that only apps use (MCP Apps). */
export const hintNames = [...annotationHints, 'appOnly'] as const
export type ToolHints = Readonly<Partial<Record<(typeof hintNames)[number], boolean>>>

/** Returns the hints in a tool's annotations and in its `_meta`. */
export function hintsIn(annotations: unknown, meta?: unknown): ToolHints {
  const given = fieldsOf(annotations)
  const hints = annotationHints
    .filter((hint) => typeof given[hint] === 'boolean')
    .map((hint) => [hint, given[hint]] as const)
  return Object.fromEntries([...hints, ...(isAppOnly(meta) ? [['appOnly', true] as const] : [])])
}

/** True for the `_meta` of a tool that only apps use. */
function isAppOnly(meta: unknown): boolean {
  const { visibility } = fieldsOf(fieldsOf(meta)['ui'])
  return visibility !== undefined && !listOf(visibility).includes('model')
}

export function resourceOf({ action, id }: PolicyRequest): Uid {
  return { type: policyActions[action].entityType, id }
}

export function refusal(action: Action): GatehouseError {
  return new GatehouseError('FORBIDDEN', { detail: actions[action].refusal })
}

export interface ListRow {
  /** Name of the result member that contains the items. */
  readonly member: string
  /** Name of the item member that contains the client-visible name. */
  readonly key: string
  readonly action: Action
}

/** Lists that are filtered to contain only permitted items. */
export const lists: Readonly<Record<string, ListRow>> = {
  'tools/list': { member: 'tools', key: 'name', action: 'call_tool' },
  'prompts/list': { member: 'prompts', key: 'name', action: 'get_prompt' },
  'resources/list': { member: 'resources', key: 'uri', action: 'read_resource' },
  'resources/templates/list': { member: 'resourceTemplates', key: 'uriTemplate', action: 'read_resource' },
  'skills/list': { member: 'skills', key: 'uri', action: 'get_skill' },
}

/** Methods that, like notifications, are not subject to policies. */
const freeMethods: ReadonlySet<string> = new Set([
  'initialize',
  'ping',
  'logging/setLevel',
  'server/discover',
  ...Object.keys(lists),
])

/**
 * Returns a request's policy queries: an empty list when the request is not subject to policies, and undefined for an
 * unknown method. Throws INVALID_PARAMS when required members cannot be read.
 */
export function accessRequestsOf(method: string, params: JsonObject): readonly AccessRequest[] | undefined {
  switch (method) {
    case 'tools/call':
      return [{ action: 'call_tool', id: text(params, 'name'), arguments: params.raw('arguments') }]
    case 'prompts/get':
      return [{ action: 'get_prompt', id: text(params, 'name') }]
    case 'resources/read':
    case 'resources/subscribe':
    // Checks the request, because the response would reveal whether the resource exists.
    case 'resources/unsubscribe':
    case 'resources/directory/read':
      return [{ action: 'read_resource', id: text(params, 'uri') }]
    case 'skills/get':
      return [{ action: 'get_skill', id: text(params, 'uri') }]
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
      detail: `Invalid params: ${member} must be an object with unique member names`,
      cause,
    })
  }
}
