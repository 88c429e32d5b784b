/**
 * Explains whether a caller can use a virtual server's item. The stages are in the order of a call: name, conflict,
 * filter, pin, policy, limits, quotas, credential, backend. Uses plain data from a running or configured server, and
 * makes no requests.
 */
import { pinRefusal } from '../../observe/index.ts'
import {
  type DecisionExplanation,
  explainDecision,
  explainExternal,
  explainQuotas,
  explainWebhooks,
} from '../../policy/index.ts'
import type {
  ExplainedBackend,
  ExplainQuestion,
  Explanation,
  ExplainedItem,
  Snapshot,
  ExplainedStep,
} from './types.ts'

/**
 * Rejects with INVALID_CONFIG when the policies are unusable, and with INVALID_PARAMS when the arguments are not an
 * object.
 */
export async function explain(snapshot: Snapshot, rawQuestion: ExplainQuestion): Promise<Explanation> {
  const question = { ...rawQuestion, name: ownName(snapshot, rawQuestion) }
  const { action, name } = question
  if (action === 'call_tool' && snapshot.own.includes(name)) {
    const steps = [
      pass('name', `${name} is one of the server’s own tools`),
      ...webhookSteps(snapshot, question, { backend: '', original: name }),
      ...(await policySteps(snapshot, question, undefined)),
      ...limitSteps(snapshot, name),
    ]
    return { decision: decisionOf(snapshot, steps), steps }
  }
  const item = itemOf(snapshot, question)
  if (!item) return { decision: 'not_found', steps: missingSteps(snapshot, question) }
  const { backend, original } = item
  const steps = [
    pass('name', nameText(item, name)),
    ...(item.alias === undefined
      ? []
      : [
          note(
            'name',
            `clients see the alias ${item.alias}, because the full name is too long for some clients`,
          ),
        ]),
    ...snapshot.conflicts
      .filter((conflict) => conflict.name === name)
      .map(({ message }) => note('conflict', message)),
    ...filterSteps(snapshot, item),
    ...pinSteps(snapshot, item),
    ...webhookSteps(snapshot, question, item),
    ...(await policySteps(snapshot, question, item)),
    ...limitSteps(snapshot, name),
    ...quotaSteps(snapshot, item),
    ...guardrailSteps(snapshot, action, item),
    ...backendSteps(snapshot.backends.find((candidate) => candidate.name === backend)),
  ]
  return { decision: decisionOf(snapshot, steps), target: { backend, original }, steps }
}

function ownName({ items }: Snapshot, { action, name }: ExplainQuestion): string {
  return items.find((item) => item.action === action && item.alias === name)?.name ?? name
}

function itemOf(
  { items, resourceKey }: Snapshot,
  { action, name }: ExplainQuestion,
): ExplainedItem | undefined {
  const key = action === 'read_resource' ? resourceKey(name) : name
  return items.find((item) => item.action === action && item.name === key)
}

function nameText({ backend, original, name: key }: ExplainedItem, name: string): string {
  if (backend === '') return `${name} is a workflow`
  return key === name
    ? `${name} is ${original} of backend ${backend}`
    : `${name} matches the template ${key} of backend ${backend}`
}

function decisionOf(
  { decisionPoint }: Snapshot,
  steps: readonly ExplainedStep[],
): 'allow' | 'deny' | 'undecided' {
  if (steps.some(({ verdict }) => verdict === 'stop')) return 'deny'
  return decisionPoint ? 'undecided' : 'allow'
}

function pass(stage: ExplainedStep['stage'], message: string): ExplainedStep {
  return { stage, verdict: 'pass', message }
}

function note(stage: ExplainedStep['stage'], message: string): ExplainedStep {
  return { stage, verdict: 'note', message }
}

function stop(stage: ExplainedStep['stage'], message: string): ExplainedStep {
  return { stage, verdict: 'stop', message }
}

/**
 * Explains why a name is missing: the item lost a conflict, belongs to an unlisted backend, or has a different name.
 */
function missingSteps(
  { items, conflicts, backends, prefixes }: Snapshot,
  { action, name }: ExplainQuestion,
): ExplainedStep[] {
  const lost = conflicts.filter((conflict) => conflict.name === name)
  if (lost.length > 0) return lost.map(({ message }) => stop('conflict', message))
  const unknown = backends.filter(
    (backend) => (!backend.listed || backend.excluded) && name.startsWith(prefixes[backend.name] ?? ''),
  )
  const otherwise = items
    .filter(
      (item) =>
        item.action === action && (item.original === name || item.original === withoutPrefix(name, prefixes)),
    )
    .map((item) => note('name', `${item.original} of backend ${item.backend} is available as ${item.name}`))
  return [
    stop('name', `no item is named ${name}`),
    ...otherwise.slice(0, 5),
    ...unknown.flatMap((backend) => [
      note('backend', `the items on backend ${backend.name} are unknown; the backend may offer ${name}`),
      ...backendSteps(backend).filter(({ verdict }) => verdict !== 'pass'),
    ]),
  ]
}

function withoutPrefix(name: string, prefixes: Snapshot['prefixes']): string | undefined {
  const prefix = Object.values(prefixes).find((candidate) => candidate !== '' && name.startsWith(candidate))
  return prefix === undefined ? undefined : name.slice(prefix.length)
}

function filterSteps({ searchOnly }: Snapshot, { action, hidden, name }: ExplainedItem): ExplainedStep[] {
  if (hidden !== undefined) return [stop('filter', hidden)]
  if (!searchOnly || action !== 'call_tool') return [pass('filter', 'not hidden by a filter')]
  return [note('filter', `not listed: clients find it with find_tool and call it with call_tool as ${name}`)]
}

function pinSteps({ locked }: Snapshot, { refused, backend }: ExplainedItem): ExplainedStep[] {
  if (refused !== undefined) return [stop('pin', pinRefusal(refused))]
  if (!locked.includes(backend)) return []
  return [
    note(
      'pin',
      `backend ${backend} has a tool lock, which only a running server checks: use --url, or run gatehouse lock --check`,
    ),
  ]
}

/** Webhooks are not called, because their response depends on the arguments and can change. */
function webhookSteps(
  { webhooks }: Snapshot,
  { action }: ExplainQuestion,
  { backend, original }: { readonly backend: string; readonly original: string },
): ExplainedStep[] {
  const details = webhooks ? explainWebhooks(webhooks, action, { backend, original }) : []
  if (details.length === 0) return []
  return [{ ...note('webhook', 'webhooks may reject or change the call; they were not called'), details }]
}

function guardrailSteps(
  { guardrails }: Snapshot,
  action: ExplainQuestion['action'],
  { backend, original }: ExplainedItem,
): ExplainedStep[] {
  const details = guardrails?.(action, { backend, original }) ?? []
  if (details.length === 0) return []
  return [{ ...note('guardrail', 'guardrails inspect the call'), details }]
}

async function policySteps(
  { policies, decisionPoint, own, claimsOf }: Snapshot,
  { name, action, claims, subject, arguments: args }: ExplainQuestion,
  item: ExplainedItem | undefined,
): Promise<ExplainedStep[]> {
  const upstream =
    claimsOf === undefined
      ? []
      : [
          note(
            'policy',
            `the policies read claims from the upstream provider ${claimsOf}, not from the presented token; the given claims are used instead`,
          ),
        ]
  const about = {
    action,
    id: name,
    claims,
    subject,
    ...(item ? { origin: { backend: item.backend, original: item.original }, hints: item.hints ?? {} } : {}),
  }
  if (decisionPoint) {
    const { url, question } = await explainExternal(decisionPoint, { ...about, arguments: args })
    const message = `the external decision point decides: ${url}`
    return [{ stage: 'policy', verdict: 'note', message, details: [`question: ${question}`] }]
  }
  if (!policies) return [pass('policy', 'no policies: all callers are allowed')]
  const call = await explainDecision(policies, { ...about, arguments: args })
  const isGranted = call.decision === 'unmentioned' && own.includes(name)
  if (isGranted)
    return [...upstream, pass('policy', 'the server’s own tools are allowed, and no policy forbids this one')]
  const steps: ExplainedStep[] = [
    ...upstream,
    { stage: 'policy', verdict: call.decision === 'permitted' ? 'pass' : 'stop', ...policyText(call) },
  ]
  if (args === undefined) return steps
  // List requests have no tool arguments, so a policy that reads arguments can hide a callable tool.
  const list = await explainDecision(policies, about)
  if ((list.decision === 'permitted') === (call.decision === 'permitted')) return steps
  const listed = list.decision === 'permitted' ? 'it is listed' : 'it is not listed'
  return [...steps, note('policy', `${listed}: lists are filtered without arguments`)]
}

const maxDetails = 20

function policyText({
  decision,
  determining,
  refused,
  policies,
  missing,
}: DecisionExplanation): Pick<ExplainedStep, 'message' | 'details'> {
  const verdict = {
    permitted: `permitted by ${determining.join(', ')}`,
    forbidden: `forbidden by ${determining.join(', ') || 'a failed policy'}`,
    unmentioned: 'no policy permits it',
  }[decision]
  const lines = policies
    .filter(({ effect }) => decision === 'unmentioned' || effect === 'forbid' || decision === 'forbidden')
    .map(({ id, effect, outcome, because, absent }) => {
      const missingText = absent ? `; the request has no ${absent.join(', ')}` : ''
      return `${effect} ${id} ${outcome}${because === undefined ? '' : `: ${because}`}${missingText}`
    })
  const absent =
    missing.length > 0
      ? [`permit policies read attributes that the request lacks: ${missing.join(', ')}`]
      : []
  return {
    message: refused === undefined ? verdict : `rejected: ${refused}`,
    details: decision === 'permitted' ? [] : [...lines.slice(0, maxDetails), ...absent],
  }
}

function limitSteps({ limits }: Snapshot, name: string): ExplainedStep[] {
  return limits
    .filter(({ tool }) => tool === undefined || tool === name)
    .map(({ text }) => note('limits', text))
}

function quotaSteps(
  { quotas, costs, quotaShares }: Snapshot,
  { action, backend, original }: ExplainedItem,
): ExplainedStep[] {
  if (action !== 'call_tool' || quotas.length === 0) return []
  if (backend === '')
    return [note('quota', 'quotas count the calls that the workflow’s steps make, not the workflow itself')]
  return explainQuotas({ quotas, costs, shares: quotaShares }, { backend, tool: original }).map((text) =>
    note('quota', text),
  )
}

function backendSteps(backend: ExplainedBackend | undefined): ExplainedStep[] {
  if (!backend) return []
  const { name, health, error, fix, requiresSignIn, circuit, authType, excluded } = backend
  const isOpen = authType === 'unauthenticated'
  const since = backend.since === undefined ? '' : ` (since ${backend.since})`
  const reason = `${error === undefined ? '' : `: ${error}`}${since}`
  const withFix = (step: ExplainedStep) =>
    fix === undefined ? step : { ...step, details: [`next step: ${fix}`] }
  if (excluded) return [stop('backend', `backend ${name} is excluded: ${excluded.join('; ')}`)]
  const credential =
    health === 'unauthenticated'
      ? withFix(
          stop(
            'credential',
            requiresSignIn
              ? `backend ${name} requires a sign-in${since}`
              : `backend ${name} rejected ${isOpen ? 'a request without a credential' : `the ${authType} credential`}${reason}`,
          ),
        )
      : pass(
          'credential',
          isOpen
            ? `backend ${name} is called without a credential`
            : `backend ${name} is called with ${authType}`,
        )
  if (circuit === 'open')
    return [
      credential,
      withFix(
        stop('backend', `the circuit breaker for backend ${name} is open${reason}: calls are rejected`),
      ),
    ]
  if (health === 'unhealthy')
    return [credential, withFix(stop('backend', `backend ${name} is unhealthy${reason}`))]
  if (health === 'healthy' || health === 'unauthenticated')
    return [credential, ...(health === 'healthy' ? [pass('backend', `backend ${name} is healthy`)] : [])]
  return [credential, withFix(note('backend', `backend ${name} is ${health}${reason}`))]
}
