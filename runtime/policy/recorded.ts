/** Parses a decision from an audit log line. Treats malformed members as missing. */
import { exactJson, isFields, own } from '../../schemas/index.ts'
import type { PolicyInputs } from './inputs.ts'
import type { AccessRequest, Action } from './requests.ts'

export interface RecordedLine {
  readonly principal: string
  readonly request: Pick<AccessRequest, 'action' | 'id' | 'origin'>
  readonly decision: 'allow' | 'deny'
  /** True for one of the gateway's own tools that was allowed without a policy. */
  readonly isUnreasoned: boolean
  readonly inputs: PolicyInputs | undefined
  /** Set when an external decision point was responsible; `failed` if it did not make a decision. */
  readonly elsewhere: 'decided' | 'failed' | undefined
}

const actions: Readonly<Record<string, Action>> = {
  tool: 'call_tool',
  prompt: 'get_prompt',
  resource: 'read_resource',
  skill: 'get_skill',
}

/** Parses a line. Returns undefined when the line contains no decision. */
export function recordedLine(text: string): RecordedLine | undefined {
  const line = parsed(text)
  const policy = line?.['policy']
  const target = line?.['target']
  const subjects = line?.['subjects']
  if (!isFields(policy) || !isFields(target)) return undefined
  const { name, type, backend, original } = target
  const { decision, reason, errors, inputs } = policy
  const action = typeof type === 'string' ? own(actions, type) : undefined
  if (!action || typeof name !== 'string' || (decision !== 'allow' && decision !== 'deny')) return undefined
  const user = isFields(subjects) ? subjects['user_id'] : undefined
  const origin =
    typeof original === 'string'
      ? { backend: typeof backend === 'string' ? backend : '', original }
      : undefined
  return {
    principal: typeof user === 'string' ? user : 'anonymous',
    request: { action, id: name, ...(origin ? { origin } : {}) },
    decision,
    isUnreasoned: decision === 'allow' && Array.isArray(reason) && reason.length === 0,
    inputs: inputsOf(inputs),
    elsewhere: isPoint(reason) ? 'decided' : isPoint(errors) ? 'failed' : undefined,
  }
}

/** True for an audit entry about a decision point: `authzenv1`, or `authzenv1: timeout`. */
function isPoint(value: unknown): boolean {
  return Array.isArray(value) && value.some((one) => /^(?:httpv1|authzenv1)(?:: |$)/.test(String(one)))
}

function parsed(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value = exactJson(text)
    return isFields(value) ? value : undefined
  } catch {
    return undefined
  }
}

function inputsOf(value: unknown): PolicyInputs | undefined {
  if (!isFields(value)) return undefined
  const { mode, groups, attributes, claims, hints, principal } = value
  if (mode !== 'read' && mode !== 'all') return undefined
  return {
    mode,
    groups: Array.isArray(groups) ? groups.filter((group) => typeof group === 'string') : [],
    ...(isFields(attributes) ? { attributes } : {}),
    ...(isFields(claims) ? { claims } : {}),
    ...(isFields(principal) ? { principal } : {}),
    arguments: value['arguments'],
    ...(value['denyAll'] === true ? { denyAll: true as const } : {}),
    ...(isFields(hints) ? { hints: hints as Readonly<Record<string, boolean>> } : {}),
  }
}
