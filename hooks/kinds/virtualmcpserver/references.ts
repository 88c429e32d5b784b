/**
 * References of a virtual server that are neither authentication nor backends: group, workflows, embedding server, tool
 * configurations, telemetry, webhooks. Each sets its condition; what is broken is returned, so that all errors are known at once.
 */
import {
  type Aggregation,
  type CompositeTool,
  formatViolations,
  type Optimizer,
  reservedOverrides,
  type RuntimeWebhooks,
  type Telemetry,
} from '../../../schemas/index.ts'
import { CheckBudget, workflowViolations } from '../../../schemas/workflow/index.ts'
import { type SyncFailure, type ConfigPart, failed } from '../../sync/conditions.ts'
import type { SyncContext } from '../../sync/context.ts'
import { fieldsOf } from '../../base/kube.ts'
import type { PodNeeds } from '../../runtime-config/needs.ts'
import { literalHeaders, telemetryPart } from '../../runtime-config/telemetry.ts'
import { webhooksPart } from '../../runtime-config/webhooks.ts'
import {
  configCalled,
  configHashOf,
  groupFailure,
  checkedConfig,
  telemetryCondition,
  toolCondition,
  webhookCondition,
} from '../../references/resolve.ts'
import { reservedNames } from './reserved.ts'

type Context = SyncContext<'VirtualMCPServer'>

export function checkGroup(context: Context): SyncFailure | undefined {
  const failure = groupFailure(context, context.parent.spec.groupRef.name)
  context.conditions.check('GroupRefValidated', failure, 'GroupRefValid', 'The group exists and is ready')
  return failure
}

/** Inline workflows and referenced ones, by name. */
export function compositeTools(context: Context): ConfigPart<readonly CompositeTool[]> {
  const { compositeTools: inline = [], compositeToolRefs: refs = [] } = context.parent.spec.config ?? {}
  const part = withReferenced(context, inline, refs)
  if (refs.length > 0) {
    context.conditions.check(
      'CompositeToolRefsValidated',
      part.failure,
      'CompositeToolRefsValid',
      'All workflows are valid',
    )
  }
  return part
}

function withReferenced(
  context: Context,
  inline: readonly CompositeTool[],
  refs: readonly { readonly name: string }[],
): ConfigPart<readonly CompositeTool[]> {
  const tools = [...inline]
  for (const { name } of refs) {
    const definition = context.find('VirtualMCPCompositeToolDefinition', name)
    if (!definition) {
      return failed('CompositeToolRefNotFound', `VirtualMCPCompositeToolDefinition ${name} does not exist`)
    }
    const violations = context.violationsOf(definition)
    const first = violations[0]
    if (first) {
      return failed(
        'CompositeToolRefInvalid',
        `VirtualMCPCompositeToolDefinition ${name} is not valid: ${first.path}: ${first.message}`,
      )
    }
    const spec = context.filled('VirtualMCPCompositeToolDefinition', name)?.spec
    if (!spec) continue
    if (tools.some((tool) => tool.name === spec.name)) {
      return failed('CompositeToolRefInvalid', `more than one workflow is called ${spec.name}`)
    }
    tools.push(spec)
  }
  const beyond = refs.length > 0 ? sumViolation(tools, inline.length) : undefined
  return beyond === undefined ? { value: tools } : failed('CompositeToolRefInvalid', beyond)
}

/** The server checks inline and referenced workflows together, and what is valid by itself may be too much with others. */
function sumViolation(tools: readonly CompositeTool[], inline: number): string | undefined {
  const budget = new CheckBudget()
  for (const [index, tool] of tools.entries()) {
    const path = index < inline ? `spec.config.compositeTools[${index}]` : `workflow ${tool.name}: spec`
    const [first] = workflowViolations(tool, path, budget)
    if (first) return formatViolations([first])
  }
  return undefined
}

/** The optimizer's settings with the address of the embedding server; undefined without one. */
export function optimizer(context: Context): ConfigPart<Optimizer | undefined> {
  const { config, embeddingServerRef } = context.parent.spec
  const own = config?.optimizer
  if (!embeddingServerRef) return { value: own }
  const part = embeddingUrl(context, embeddingServerRef.name)
  context.conditions.check(
    'EmbeddingServerReady',
    part.failure,
    'EmbeddingServerReady',
    'The EmbeddingServer is ready',
  )
  if (part.failure) return part
  if (own?.embeddingService !== undefined && own.embeddingService !== part.value) {
    context.conditions.set(
      'EmbeddingServiceOverridden',
      'True',
      'EmbeddingServiceOverridden',
      'config.optimizer.embeddingService is ignored: embeddingServerRef decides',
    )
  }
  return { value: { ...(own ?? optimizerDefaults), embeddingService: part.value ?? '' } }
}

/** A reference without a block switches the optimizer on as it is by default. */
const optimizerDefaults: Optimizer = {
  embeddingProvider: 'tei',
  embeddingServiceTimeout: '30s',
  hybridSearchSemanticRatio: '0.5',
  maxToolsToReturn: 8,
  semanticDistanceThreshold: '1.0',
}

function embeddingUrl(context: Context, name: string): ConfigPart<string> {
  const server = context.find('EmbeddingServer', name)
  if (!server) return failed('EmbeddingServerNotFound', `EmbeddingServer ${name} does not exist`)
  const { phase, readyReplicas, url } = fieldsOf(server['status'])
  if (
    phase !== 'Ready' ||
    typeof readyReplicas !== 'number' ||
    readyReplicas < 1 ||
    typeof url !== 'string'
  ) {
    return failed('EmbeddingServerNotReady', 'Waiting for EmbeddingServer to become ready')
  }
  return { value: url }
}

export interface AggregationResult {
  readonly aggregation: Aggregation
  /** Why a backend cannot be used, by its name: without its filter it would show all of its tools. */
  readonly failures: ReadonlyMap<string, SyncFailure>
}

/** Aggregation with every MCPToolConfig put in; a reference replaces filter and overrides. */
export function aggregation(context: Context): AggregationResult {
  const own = context.parent.spec.config?.aggregation ?? aggregationDefaults
  const tools: NonNullable<Aggregation['tools']>[number][] = []
  const failures = new Map<string, SyncFailure>()
  const reserved = reservedNames(context.parent.spec)
  /** The server leaves out the tools alone. */
  const taken: SyncFailure[] = []
  let isReferring = false
  for (const entry of own.tools ?? []) {
    const { toolConfigRef, ...rest } = entry
    if (!toolConfigRef) {
      tools.push(rest)
      continue
    }
    const config = configCalled(context, 'MCPToolConfig', toolConfigRef.name, toolCondition)
    isReferring = true
    if (config.failure) {
      failures.set(entry.workload, config.failure)
      continue
    }
    const { spec } = config.value
    const overrides = { workload: entry.workload, overrides: spec.toolsOverride }
    for (const { message } of reservedOverrides({ ...own, tools: [overrides] }, reserved, '')) {
      const named = `MCPToolConfig ${toolConfigRef.name}: spec.toolsOverride for ${entry.workload}: ${message}`
      taken.push({ reason: toolCondition.notValid, message: `${named}; the tool is left out` })
    }
    const { filter: _filter, overrides: _overrides, ...settings } = rest
    tools.push({
      ...settings,
      ...(spec.toolsFilter && spec.toolsFilter.length > 0 && { filter: spec.toolsFilter }),
      ...(spec.toolsOverride && { overrides: spec.toolsOverride }),
    })
  }
  if (isReferring) checkToolConfigs(context, [...failures.values(), ...taken])
  return { aggregation: { ...own, ...(own.tools && { tools }) }, failures }
}

function checkToolConfigs({ conditions }: Context, failures: readonly SyncFailure[]): void {
  const [first] = failures
  const message = [...new Set(failures.map((failure) => failure.message))].join('; ')
  const failure = first && { reason: first.reason, message }
  conditions.check(toolCondition.type, failure, toolCondition.valid, 'Every MCPToolConfig is valid')
}

const aggregationDefaults: Aggregation = {
  conflictResolution: 'prefix',
  conflictResolutionConfig: { prefixFormat: '{workload}_' },
  maxToolNameLength: 64,
  defaultToolVisibility: 'allow',
  excludeAllTools: false,
}

export interface TelemetryResult {
  readonly telemetry: ConfigPart<Telemetry | undefined>
  readonly hash: string | undefined
}

/** The shared telemetry configuration, or what spec.config says itself. */
export function telemetry(context: Context, needs: PodNeeds): TelemetryResult {
  const { telemetryConfigRef: reference, config } = context.parent.spec
  if (!reference) return { telemetry: { value: ownTelemetry(config?.telemetry) }, hash: undefined }
  const shared = checkedConfig(context, 'MCPTelemetryConfig', reference.name, telemetryCondition)
  if (shared.failure) return { telemetry: shared, hash: undefined }
  const target = { server: context.name, version: context.settings.version, needs }
  return {
    telemetry: { value: telemetryPart(shared.value, reference, target) },
    hash: configHashOf(context, 'MCPTelemetryConfig', reference.name),
  }
}

export interface WebhooksResult {
  readonly webhooks: ConfigPart<RuntimeWebhooks | undefined>
  readonly hash: string | undefined
}

export function webhooks(context: Context, needs: PodNeeds): WebhooksResult {
  const { webhookConfigRef: reference } = context.parent.spec
  if (!reference) return { webhooks: { value: undefined }, hash: undefined }
  const shared = checkedConfig(context, 'MCPWebhookConfig', reference.name, webhookCondition)
  if (shared.failure) return { webhooks: shared, hash: undefined }
  return {
    webhooks: { value: webhooksPart(shared.value, needs) },
    hash: configHashOf(context, 'MCPWebhookConfig', reference.name),
  }
}

function ownTelemetry(own: Telemetry | undefined): Telemetry | undefined {
  const headers = literalHeaders(own?.headers)
  return own && headers ? { ...own, headers } : own
}
