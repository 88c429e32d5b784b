/**
 * Calls the virtual server's webhooks before authorization, and again with the operation's result.
 *
 * Webhooks run before every other check, so policies, pins, limits and the catalog see the changed call. A webhook
 * cannot change which item is called. If a webhook matches a call by its backend, the call runs on that backend or not
 * at all. Calls made by scripts and tool search pass through this link. Workflow steps skip the checks and use
 * `performStepWithWebhooks`.
 * Source: docs/guides/webhooks.md.
 */
import { GatehouseError } from '../../../schemas/index.ts'
import { JsonObject } from '../../mcp/index.ts'
import {
  type AccessRequest,
  accessRequestsOf,
  type FactsResponse,
  type Origin,
  type WebhookCall,
  type WebhookChain,
} from '../../policy/index.ts'
import { type Link, type Operation, type Perform, withParams, withWholeResult } from '../model/operation.ts'
import type { OperationClient } from '../model/session.ts'
import type { Outcome } from '../model/outcome.ts'
import { changeTaskResult, type TaskRef } from '../model/task.ts'

export interface WebhookParts {
  readonly chain: WebhookChain
  /** Returns facts about the requested item. Uses the same lookup as the request itself. */
  readonly factsOf: (client: OperationClient, request: AccessRequest) => Promise<FactsResponse>
  /** True for one of Gatehouse's own tools that the catalog does not contain. */
  readonly isOwnTool: (name: string) => boolean
  /** Lists mismatches between a structured result and the tool's output schema. */
  readonly listResultMismatches: (
    operation: Operation,
    structured: Buffer | undefined,
  ) => Promise<readonly string[]>
}

export function askWebhooks({ chain, ...parts }: WebhookParts): Link {
  return function askWebhooks(operation, next) {
    const { task } = operation
    if (task) return chain.concerns('tools/call') ? respondToTask(operation, task, next) : next(operation)
    return chain.concerns(operation.method) ? callWebhooks(operation, next) : next(operation)
  }
  /** Calls the webhooks with the late result of a tool call. */
  async function respondToTask(operation: Operation, task: TaskRef, next: Perform): Promise<Outcome> {
    const params = new JsonObject(Buffer.from(JSON.stringify({ name: task.tool })))
    const origin = await originOf({ ...operation, method: 'tools/call', params }, parts)
    const call = { ...callOf(operation, params, origin), method: 'tools/call' }
    const outcome = await next(withWholeResult(operation))
    return changeTaskResult(operation.method, outcome, (result) => respond(chain, call, result))
  }
  async function callWebhooks(operation: Operation, next: Perform): Promise<Outcome> {
    const origin = await originOf(operation, parts)
    const call = {
      ...callOf(operation, operation.params, origin),
      ...(operation.method === 'tools/call' && {
        misfits: (structured: Buffer | undefined) => parts.listResultMismatches(operation, structured),
      }),
    }
    const params = await chain.request(call)
    const changed = changedOperation(operation, params, origin)
    return respond(chain, { ...call, params }, await next(withWholeResult(changed)))
  }
}

/** The backend, original name and advertised name of a workflow step's tool. */
export interface StepTool extends Origin {
  readonly name: string
}

/** Performs a workflow step and calls the webhooks with the advertised name of the step's tool. */
export async function performStepWithWebhooks(
  chain: WebhookChain | undefined,
  operation: Operation,
  { name, ...origin }: StepTool,
  perform: (operation: Operation) => Promise<Outcome>,
): Promise<Outcome> {
  if (!chain?.concerns(operation.method)) return perform(operation)
  const shownParams = new JsonObject(operation.params.with({ name: JSON.stringify(name) }))
  const call = callOf(operation, shownParams, origin)
  const params = await chain.request(call)
  const original = operation.params.raw('name')
  const stepParams =
    params === shownParams ? operation.params : new JsonObject(params.with({ name: original }))
  return respond(
    chain,
    { ...call, params },
    await perform(changedOperation(operation, stepParams, undefined)),
  )
}

function callOf(
  { method, client, id, context: { signal } }: Operation,
  params: JsonObject,
  origin: Origin | undefined,
): WebhookCall {
  return { method, params, caller: client.caller, id, origin, signal }
}

async function originOf(
  { method, params, client }: Operation,
  { factsOf, isOwnTool }: Pick<WebhookParts, 'factsOf' | 'isOwnTool'>,
): Promise<Origin | undefined> {
  const [request] = accessRequestsOf(method, params) ?? []
  if (!request) return undefined
  if (method === 'tools/call' && isOwnTool(request.id)) return { backend: '', original: request.id }
  const facts = await factsOf(client, request)
  return typeof facts === 'string' || facts instanceof GatehouseError ? undefined : facts?.origin
}

function changedOperation(operation: Operation, params: JsonObject, origin: Origin | undefined): Operation {
  if (params === operation.params && !origin) return operation
  return withParams(operation, params, origin)
}

/**
 * Calls the webhooks with an outcome. An input request or a task from a backend is not a result, so this function
 * returns it unchanged.
 */
async function respond(chain: WebhookChain, call: WebhookCall, outcome: Outcome): Promise<Outcome> {
  if (outcome.kind === 'input' || outcome.kind === 'task') return outcome
  const { kind } = outcome
  const body = kind === 'result' ? outcome.result : outcome.error
  const response = await chain.response(call, { kind, body })
  if (response.body === body) return outcome
  return kind === 'result' ? { kind, result: response.body } : { kind, error: response.body }
}
