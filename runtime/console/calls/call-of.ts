/**
 * Converts a request record to the console's view of a call. All values were truncated and redacted for the audit log;
 * sessions appear as short hashes.
 */
import type { ErrorCode } from '../../../schemas/index.ts'
import type { Caller } from '../../net/index.ts'
import {
  type ExchangeRecord,
  limitedDenial,
  type PolicyRecord,
  quotaDenial,
  sessionHash,
} from '../../observe/index.ts'
import type { CallView, DeniedBy, CallResultKind } from '../api.ts'
import { given, iso } from '../data/pages.ts'

const clientLeft = 499
const maxName = 512
const maxPolicies = 20

const byError: Partial<Record<ErrorCode, DeniedBy>> = {
  FORBIDDEN: 'policy',
  RATE_LIMITED: 'rate_limit',
  QUOTA_EXCEEDED: 'quota',
  ORIGIN_DENIED: 'origin',
  HOST_DENIED: 'origin',
}

type Draft<T> = { -readonly [K in keyof T]: T[K] }

/** `id` identifies the call; `at` is the time at which the call ended, in milliseconds since the epoch. */
export function callOf(
  record: ExchangeRecord,
  id: string,
  at: number,
  payload: CallView['payload'],
): CallView {
  const { rpc, rpcResponse, caller, client, req, durationMs, errorCode, policy, mask } = record
  const session = req.headers['mcp-session-id']
  const by = deniedBy(record.denial, errorCode)
  const name = clientText(client)
  const origin = policy?.origin()
  // Assigns members individually, because this runs for every call and spreads would dominate the cost.
  const call: Draft<CallView> = {
    id,
    at: iso(at - durationMs),
    method: rpc?.method || (req.method ?? ''),
    ms: durationMs,
    outcome: outcomeOf(record, by),
    payload,
  }
  if (rpc?.target !== undefined) call.name = rpc.target
  const original = origin?.original?.slice(0, maxName)
  if (original !== undefined) call.original = mask ? mask(original) : original
  const backend = record.backend ?? origin?.backend
  if (backend !== undefined) call.backend = backend
  if (caller || name !== undefined) call.caller = callerOf(caller, name)
  if (typeof session === 'string') call.session = sessionHash(session)
  if (rpc?.protocolVersion !== undefined) call.era = rpc.protocolVersion.slice(0, 32)
  if (by !== undefined)
    call.denied = {
      by,
      ...given('policies', by === 'policy' && policy ? denyingPolicies(policy) : undefined),
    }
  const error = errorOf(record)
  if (error) call.error = error
  const trace = traceOf(rpc?.traceparent ?? single(req.headers['traceparent']))
  if (trace !== undefined) call.trace = trace
  return call

  function errorOf({ status }: ExchangeRecord): CallView['error'] {
    if (rpcResponse?.kind === 'error')
      return { ...given('code', rpcResponse.code), ...given('message', rpcResponse.message) }
    if (rpcResponse?.toolError === true) return { message: 'the tool reported an error' }
    return status >= 400 ? { code: status } : undefined
  }
}

function callerOf(caller: Caller | undefined, client: string | undefined): NonNullable<CallView['caller']> {
  const shown: Draft<NonNullable<CallView['caller']>> = {}
  if (caller) {
    shown.sub = caller.subject.slice(0, 128)
    shown.name = caller.displayName.slice(0, 128)
    const actor = caller.facts?.actor
    if (actor !== undefined) shown.actor = actor.slice(0, 128)
  }
  if (client !== undefined) shown.client = client
  return shown
}

/**
 * Returns the check that rejected a call, based on the code of the denial or of the call's error. Returns undefined for
 * a call that was not rejected.
 */
export function deniedBy(denial: string | undefined, error: ErrorCode | undefined): DeniedBy | undefined {
  if (denial === undefined || denial.startsWith('token_')) return error && byError[error]
  if (denial === limitedDenial) return 'rate_limit'
  if (denial === quotaDenial) return 'quota'
  if (denial.startsWith('guardrail_')) return 'guardrail'
  return denial.startsWith('webhook_') ? 'webhook' : 'pin'
}

function outcomeOf({ status, outcome }: ExchangeRecord, by: DeniedBy | undefined): CallResultKind {
  if (status === 401) return 'unauthenticated'
  if (status === clientLeft) return 'cancelled'
  if (by !== undefined) return 'denied'
  return outcome === 'application_error' ? 'failure' : outcome
}

/**
 * Policies that denied the call. Omits policies that permitted the call, because they do not explain the rejection by
 * another check.
 */
export function denyingPolicies({ decision, reason }: PolicyRecord): readonly string[] | undefined {
  return decision === 'deny' ? reason.slice(0, maxPolicies) : undefined
}

function clientText(client: ExchangeRecord['client']): string | undefined {
  const words = [client?.name, client?.version].filter((word) => word !== undefined && word !== '')
  return words.length > 0 ? words.join(' ') : undefined
}

function traceOf(parent: string | undefined): string | undefined {
  return /^[0-9a-f]{2}-([0-9a-f]{32})-/.exec(parent ?? '')?.[1]
}

function single(value: string | string[] | undefined): string | undefined {
  return typeof value === 'string' ? value : undefined
}
