/**
 * A tool call that a console page starts instead of a client. In either era, the call is subject to the same policies,
 * limits and audit as a client's call, and uses the same credentials. The user of the page sees progress and can answer
 * questions.
 *
 * In the session era, the call has a separate session, which ends with the call. In the stateless era, a backend ends
 * its response to ask a question. The call is then repeated with the answers.
 */
import { randomUUID } from 'node:crypto'
import { GatehouseError } from '../../../schemas/index.ts'
import {
  type Ask,
  type DirectCall,
  type DirectResult,
  JsonObject,
  latestSessionVersion,
  respondToInputRequests,
  statelessVersion,
} from '../../mcp/index.ts'
import type { Caller } from '../../net/index.ts'
import { type AuditTrail, type CallNotes, type PolicyRecord, withNotes } from '../../observe/index.ts'
import { restoreAbilities } from '../model/client.ts'
import { auditOutcome, type Outcome } from '../model/outcome.ts'
import type { OperationClient, ClientSession } from '../model/session.ts'
import type { Operation, OperationContext, Perform } from '../model/operation.ts'

const abilities = restoreAbilities(Buffer.from('{"elicitation":{"form":{},"url":{}}}'))
const info = Buffer.from('{"name":"gatehouse-console","version":"1"}')
const maxRounds = 10

export interface DirectParts {
  readonly perform: Perform
  readonly audit: AuditTrail
  readonly endBackendSessions: (session: ClientSession) => void
}

/** Performs and audits a call. Rejects with GatehouseError. */
export function directCall(call: DirectCall, parts: DirectParts): Promise<DirectResult> {
  const { tool, toolArguments } = call
  const params = `{"name":${JSON.stringify(tool)},"arguments":${toolArguments.toString()},"_meta":{"progressToken":"try"}}`
  return direct({ ...call, method: 'tools/call', name: tool, request: toolArguments }, params, parts)
}

/** Reads and audits a resource for a caller who can neither be asked nor see progress. Rejects with GatehouseError. */
export function directRead(
  { caller, uri, signal }: { readonly caller: Caller; readonly uri: string; readonly signal: AbortSignal },
  parts: DirectParts,
): Promise<DirectResult> {
  const unused = (): void => {}
  const params = JSON.stringify({ uri })
  const read = { method: 'resources/read', name: uri, request: Buffer.from(params), caller, signal } as const
  const ask = () =>
    Promise.reject(
      new GatehouseError('CAPABILITY_REQUIRED', {
        detail: 'the console cannot answer while it reads a page',
      }),
    )
  const silent = { progress: unused, log: unused, decided: unused, routed: unused, ask }
  return direct({ ...read, ...silent, era: 'stateless' }, params, parts)
}

/** An operation of a page, with its name in the audit log and its audited arguments. */
interface DirectOperation extends Omit<DirectCall, 'tool' | 'toolArguments'> {
  readonly method: 'tools/call' | 'resources/read'
  readonly name: string
  readonly request: Buffer
}

async function direct(call: DirectOperation, params: string, parts: DirectParts): Promise<DirectResult> {
  const startedAt = performance.now()
  let backend: string | undefined
  const session = call.era === 'session' ? makeCallSession(call) : undefined
  let policy: PolicyRecord | undefined
  const operation = operationOf(call, params, session, {
    onRouted(name) {
      backend = name
      call.routed(name)
    },
    onDecision(record) {
      policy = record
      call.decided(record)
    },
  })
  const notes: CallNotes = { webhooks: undefined, quotas: undefined, guardrails: undefined }
  let ended: Outcome | undefined
  let failure: unknown
  try {
    const outcome = await withNotes(notes, () => performAsking(operation, parts.perform))
    // This call has no id, so it never becomes a task.
    if (outcome.kind === 'input' || outcome.kind === 'task')
      throw new GatehouseError('BACKEND_PROTOCOL', { detail: 'the tool asked too many questions' })
    ended = outcome
    if (ended.kind === 'error') return { kind: 'error', json: ended.error }
    return { kind: 'result', json: ended.result, denial: ended.denial }
  } catch (error) {
    failure = error
    throw error
  } finally {
    if (session) parts.endBackendSessions(session)
    parts.audit.call({
      caller: call.caller,
      method: call.method,
      tool: call.name,
      backend,
      policy,
      notes,
      outcome: auditOutcome(ended, failure),
      durationMs: Math.round((performance.now() - startedAt) * 10) / 10,
      request: call.request,
      response: ended?.kind === 'error' ? ended.error : ended?.result,
    })
  }
}

async function performAsking(operation: Operation, perform: Perform): Promise<Outcome> {
  let current = operation
  for (let round = 0; ; round++) {
    const outcome = await perform(current)
    if (outcome.kind !== 'input' || round === maxRounds) return outcome
    const ask = (request: Ask, signal: AbortSignal) => operation.context.ask(request, signal)
    const changes = await respondToInputRequests(outcome.result, ask, operation.context.signal)
    const params = new JsonObject(operation.params.with(changes))
    current = { ...operation, params, stateFor: outcome.backend }
  }
}

function operationOf(
  { caller, method, era, signal, progress, log, ask }: DirectOperation,
  params: string,
  session: ClientSession | undefined,
  observers: Pick<OperationContext, 'onRouted' | 'onDecision'>,
): Operation {
  const client: OperationClient = {
    era,
    protocolVersion: era === 'session' ? latestSessionVersion : statelessVersion,
    caller,
    abilities,
    info,
    headers: {},
    session,
  }
  return {
    method,
    params: new JsonObject(Buffer.from(params)),
    client,
    context: {
      ...observers,
      signal,
      progressToken: '"try"',
      logLevel: 'debug',
      progress,
      log,
      ask: (request, withdrawn) => ask(request, withdrawn ? AbortSignal.any([signal, withdrawn]) : signal),
    },
  }
}

/** Returns a call's session. Backends open their sessions on behalf of this session. */
function makeCallSession({ ask, log, signal }: DirectOperation): ClientSession {
  return {
    id: randomUUID(),
    deliver(_backend, method, params) {
      if (method === 'notifications/message' && params) log(params)
    },
    ask: (request, withdrawn) => ask(request, AbortSignal.any([signal, withdrawn])),
  }
}
