/** Configuration of a virtual server in which every check rejects the items that are named after it. */
import type { TokenIssuer } from '../../authserver/token-issuer.ts'
import { hook } from '../webhook-rig.ts'
import type { TestWebhook } from '../webhook.ts'
import { approvedPrompt, approvedTemplate, approvedTool, type NamedItems } from './backends.ts'
import { argumentsFor, type BackendName, backendOf, has, refusedWord, uriFor } from './reasons.ts'

export type Settings = Readonly<Record<string, unknown>>

export const serverName = 'checks'
export const namespace = 'team'
/** Number of tokens of the limit that all calls share. */
export const sharedTokens = 10_000

/** Names of workflows. */
export const workflowName = (name: string): string => `flow_${name}`
export const stepWorkflowName = (name: string): string => `step_${name}`

/** Name of a backend's tool or prompt at the clients. */
export const advertised = (name: string): string => `${backendOf(name)}_${name}`

export interface CheckedItems extends NamedItems {
  /** Workflows that are rejected themselves. */
  readonly workflows: readonly string[]
  /** Workflows with one step, whose tool is rejected. */
  readonly steps: readonly string[]
}

export interface ConfigParts {
  readonly issuer: Pick<TokenIssuer, 'incomingAuth'>
  readonly gate: Pick<TestWebhook, 'url'>
  readonly lenient: Pick<TestWebhook, 'url'>
  readonly redis: string
  readonly logFile: string
  readonly items: CheckedItems
}

export function checksConfig({ issuer, gate, lenient, redis, logFile, items }: ConfigParts): Settings {
  return {
    name: serverName,
    incomingAuth: { ...issuer.incomingAuth, authz: { type: 'cedar', policies: policies(items) } },
    audit: { enabled: true, logFile },
    telemetry: { enablePrometheusMetricsPath: true },
    sessionStorage: { provider: 'redis', address: redis, keyPrefix: 'checks:' },
    rateLimiting: rateLimits(items),
    quotas: quotas(items),
    webhooks: {
      validating: [
        hook('gate', gate, neverOpen),
        hook('lenient', lenient, { ...neverOpen, failurePolicy: 'ignore' }),
      ],
    },
    guardrails: {
      redact: [{ name: 'words', expressions: [refusedWord], action: 'refuse', direction: 'both' }],
    },
    pinning: { onChanged: 'freeze', onNew: 'block' },
    toolLocks: (['live', 'down'] as const).map((backend) => lockOf(backend, items)),
    compositeTools: [
      ...items.workflows.map((name) => workflow(workflowName(name), 'free', '{{.params.text}}')),
      ...items.steps.map((name) => workflow(stepWorkflowName(name), name)),
    ],
    operational: { failureHandling: { partialFailureMode: 'best_effort', healthCheckInterval: '24h' } },
  }
}

const neverOpen = { circuitBreaker: { failureThreshold: 1000 } }

function policies({ tools, prompts, resources, workflows, steps }: CheckedItems): readonly string[] {
  const uids = [
    ...tools.map((name) => [name, `Tool::"${advertised(name)}"`]),
    ...workflows.map((name) => [name, `Tool::"${workflowName(name)}"`]),
    ...steps.map((name) => ['', `Tool::"${stepWorkflowName(name)}"`]),
    ...prompts.map((name) => [name, `Prompt::"${advertised(name)}"`]),
    ...resources.map((name) => [name, `Resource::"${uriFor(name)}"`]),
  ]
  const forbidden = uids.flatMap(([name = '', uid]) => (has(name, 'unauthorized') ? [uid] : []))
  return [
    'permit(principal, action, resource);',
    `forbid(principal, action, resource) when { [${forbidden.join(', ')}].contains(resource) };`,
  ]
}

/** Refills so slowly that no token returns during a test. */
const yearly = (maxTokens: number) => ({ maxTokens, refillPeriod: '8760h' })

/** Client names of the tools whose rate limit allows no further call. */
export function limitedTools({ tools, workflows }: CheckedItems): readonly string[] {
  const limited = (name: string) => has(name, 'limited')
  return [...tools.filter(limited).map(advertised), ...workflows.filter(limited).map(workflowName)]
}

function rateLimits(items: CheckedItems): Settings {
  return {
    shared: yearly(sharedTokens),
    tools: limitedTools(items).map((name) => ({ name, shared: yearly(1) })),
  }
}

/** Backend names of the tools whose quota is used up. */
export function spentTools({ tools }: CheckedItems): readonly string[] {
  return tools.filter((name) => has(name, 'quota-exceeded'))
}

function quotas(items: CheckedItems): readonly Settings[] {
  const all = { name: 'all', per: 'user', window: 'month', limit: 1_000_000 }
  return [
    all,
    ...spentTools(items).map((tool) => ({
      ...{ name: `of-${tool}`, per: 'server', window: 'month', limit: 1 },
      match: { backend: backendOf(tool), tool },
    })),
  ]
}

function lockOf(backend: BackendName, { tools, prompts }: NamedItems): Settings {
  const own = (names: readonly string[]) =>
    names.filter((name) => backendOf(name) === backend && !has(name, 'unknown') && !has(name, 'pinned'))
  const locked = (name: string, definition: object) => ({ name, definition: JSON.stringify(definition) })
  return {
    backend,
    tools: own(tools).map((name) => locked(name, approvedTool(name))),
    prompts: own(prompts).map((name) => locked(name, approvedPrompt(name))),
    resourceTemplates: own(prompts).map((name) => locked(`test://${name}/{id}`, approvedTemplate(name))),
  }
}

function workflow(name: string, tool: string, text?: string): Settings {
  const given = argumentsFor(tool)
  return {
    name,
    parameters: { type: 'object', properties: { text: { type: 'string' } } },
    steps: [
      {
        ...{ id: 'one', type: 'tool', tool: `${backendOf(tool)}.${tool}` },
        arguments: text === undefined ? given : { ...given, text },
      },
    ],
    ...(has(name, 'guarded-result')
      ? { output: { properties: { text: { type: 'string', value: refusedWord } } } }
      : {}),
  }
}
