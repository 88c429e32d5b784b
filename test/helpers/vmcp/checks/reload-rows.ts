/** Changes of a configuration while a call is in flight. */
import { hook } from '../webhook-rig.ts'
import type { TestWebhook } from '../webhook.ts'

export type Settings = Readonly<Record<string, unknown>>

/** How far the call is when the configuration changes. */
export type Phase = 'streaming' | 'asking' | 'waiting'

/** The backend tool of each phase. */
export const toolOf: Readonly<Record<Phase, string>> = { streaming: 'wait', asking: 'ask', waiting: 'hold' }

export interface Change {
  readonly backends?: readonly string[]
  /** Members of the configuration before and after. */
  readonly from?: Settings
  readonly to?: Settings
  /** How the client calls the tool. Default `tools/call` with its name. */
  readonly via?: 'call_tool' | 'script' | 'workflow'
}

export function changes(webhook: Pick<TestWebhook, 'url'>): Readonly<Record<string, Change>> {
  const policies = (...more: readonly string[]): Settings => ({
    incomingAuth: {
      type: 'anonymous',
      authz: { type: 'cedar', policies: ['permit(principal, action, resource);', ...more] },
    },
  })
  const forbidden = [...Object.values(toolOf), 'plain'].map((tool) => `Tool::"one_${tool}"`)
  /** Rejects the result of the call in flight and of the next call. */
  const guarded: Settings = {
    guardrails: {
      redact: [
        {
          name: 'words',
          expressions: ['released|answered|\\bplain'],
          action: 'refuse',
          direction: 'results',
        },
      ],
    },
  }
  const denying = { webhooks: { validating: [hook('gate', webhook)] } }
  const workflow = {
    compositeTools: Object.values(toolOf).map((tool) => ({
      name: `flow_${tool}`,
      steps: [{ id: 'one', type: 'tool', tool: `one.${tool}` }],
    })),
  }
  return {
    nothing: {},
    'the backend is removed': { backends: ['two'] },
    'the backend moves to another address': { backends: ['moved', 'two'] },
    'another backend is added': { backends: ['one', 'two', 'three'] },
    'another backend is removed': { backends: ['one'] },
    'a policy forbids the tools': {
      from: policies(),
      to: policies(
        `forbid(principal, action, resource) when { [${forbidden.join(', ')}].contains(resource) };`,
      ),
    },
    'authorization is switched on': { to: policies('forbid(principal, action, resource);') },
    'authorization is switched off': { from: policies() },
    'a webhook that denies is added': { to: denying },
    'a guardrail that rejects the result is added': { to: guarded },
    'a guardrail that rejects the result is removed': { from: guarded },
    'results are limited': { to: { operational: { maxResultBytes: 1024 } } },
    'the tool is filtered out': { to: { aggregation: { tools: [{ workload: 'one', filter: ['plain'] }] } } },
    'the tools are renamed': {
      to: {
        aggregation: {
          conflictResolution: 'prefix',
          conflictResolutionConfig: { prefixFormat: 'new_{workload}_' },
        },
      },
    },
    'new tools are blocked': {
      to: {
        pinning: { onNew: 'block' },
        toolLocks: [{ backend: 'one', tools: [], prompts: [], resourceTemplates: [] }],
      },
    },
    'tool search is switched on': { to: { optimizer: {} } },
    'tool search is switched off': { from: { optimizer: {} }, via: 'call_tool' },
    'scripts are switched on': { to: { codeMode: { enabled: true } } },
    'scripts are switched off': { from: { codeMode: { enabled: true } }, via: 'script' },
    'a workflow is added': { to: workflow },
    'a workflow is removed': { from: workflow, via: 'workflow' },
    'a guardrail is added to a workflow': {
      from: workflow,
      to: { ...workflow, ...guarded },
      via: 'workflow',
    },
  }
}
