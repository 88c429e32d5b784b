/**
 * Webhooks in the pipeline of the virtual server: asked before authorization, and about what comes back.
 *
 * Stands before everything else that checks a call: policies, pins, limits and the catalog see the call as the webhooks have
 * made it, so that a change by one of them escapes none of these. They cannot change what is called. What matched by its
 * backend is carried out there or not at all. Inner calls of scripts and what tool search calls come through here by
 * themselves; the steps of workflows, which pass no guards, come by `askedStep`.
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

export interface WebhookParts {
  readonly chain: WebhookChain
  /** What is known of something that this client could use, looked up as the request itself would. */
  readonly factsOf: (client: OperationClient, request: AccessRequest) => Promise<FactsResponse>
  /** True for a tool of the gateway itself, which the catalog does not know. */
  readonly isOwnTool: (name: string) => boolean
  /** What of a structured result is not as the called tool says. */
  readonly misfits: (operation: Operation, structured: Buffer | undefined) => Promise<readonly string[]>
}

export function askWebhooks({ chain, ...parts }: WebhookParts): Link {
  return function askWebhooks(operation, next) {
    return chain.concerns(operation.method) ? asked(operation, next) : next(operation)
  }
  async function asked(operation: Operation, next: Perform): Promise<Outcome> {
    const origin = await originOf(operation, parts)
    const call = {
      ...callOf(operation, operation.params, origin),
      ...(operation.method === 'tools/call' && {
        misfits: (structured: Buffer | undefined) => parts.misfits(operation, structured),
      }),
    }
    const params = await chain.request(call)
    const instead = insteadOf(operation, params, origin)
    return respond(chain, { ...call, params }, await next(withWholeResult(instead)))
  }
}

/** Where the tool of a step is, and what clients call it. */
export interface StepTool extends Origin {
  readonly name: string
}

/** The same for the step of a workflow: webhooks see the tool by its advertised name. */
export async function askedStep(
  chain: WebhookChain | undefined,
  operation: Operation,
  { name, ...origin }: StepTool,
  perform: (operation: Operation) => Promise<Outcome>,
): Promise<Outcome> {
  if (!chain?.concerns(operation.method)) return perform(operation)
  const shown = new JsonObject(operation.params.with({ name: JSON.stringify(name) }))
  const call = callOf(operation, shown, origin)
  const params = await chain.request(call)
  const original = operation.params.raw('name')
  const own = params === shown ? operation.params : new JsonObject(params.with({ name: original }))
  return respond(chain, { ...call, params }, await perform(insteadOf(operation, own, undefined)))
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

function insteadOf(operation: Operation, params: JsonObject, origin: Origin | undefined): Operation {
  if (params === operation.params && !origin) return operation
  return withParams(operation, params, origin)
}

/** Questions of a backend go on as they are: they are no result. */
async function respond(chain: WebhookChain, call: WebhookCall, outcome: Outcome): Promise<Outcome> {
  if (outcome.kind === 'input') return outcome
  const { kind } = outcome
  const body = kind === 'result' ? outcome.result : outcome.error
  const response = await chain.response(call, { kind, body })
  if (response.body === body) return outcome
  return kind === 'result' ? { kind, result: response.body } : { kind, error: response.body }
}
