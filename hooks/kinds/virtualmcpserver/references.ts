/**
 * A virtual server's references. Each entry defines the field, the object's kind, the condition that reports the
 * object, and how the object is converted to configuration.
 */
import {
  type Aggregation,
  type CompositeTool,
  formatViolations,
  type Optimizer,
  reservedOverrides,
  reservedTools,
  type Telemetry,
  type VirtualMCPServerSpec,
} from '../../../schemas/index.ts'
import { CheckBudget, workflowViolations } from '../../../schemas/workflow/index.ts'
import { fieldsOf } from '../../base/kube.ts'
import { type ResolvedIssuers, resolveIssuers } from '../../runtime-config/issuers.ts'
import { configReferences, groupReference } from '../../references/reference.ts'
import {
  authzCondition,
  configCalled,
  oidcCondition,
  telemetryCondition,
  toolCondition,
  webhookCondition,
} from '../../references/resolve.ts'
import { resourceAuthz, sharedPolicies } from '../../runtime-config/authz.ts'
import type { PodNeeds } from '../../runtime-config/needs.ts'
import { oidcPart } from '../../runtime-config/oidc.ts'
import { literalHeaders, telemetryPart } from '../../runtime-config/telemetry.ts'
import { webhooksPart } from '../../runtime-config/webhooks.ts'
import { type ConfigPart, failed, type SyncFailure } from '../../sync/conditions.ts'
import type { SyncContext } from '../../sync/context.ts'
import { outgoingAuth } from './config/outgoing.ts'

type Context = SyncContext<'VirtualMCPServer'>

interface VirtualServerTarget {
  readonly context: Context
  /** Collects the environment and volumes that the configuration needs. */
  readonly needs: PodNeeds
  /** URL of the protected resource, used when the OIDC reference does not set one. */
  readonly resource: string
}

const reference = configReferences<VirtualServerTarget>()

export const virtualServerReferences = {
  group: groupReference({ valid: 'GroupRefValid', message: 'The group exists and is ready' }),
  compositeTools: {
    names: ['spec.config.compositeToolRefs[].name'],
    kind: 'VirtualMCPCompositeToolDefinition',
    resolve: compositeTools,
  },
  optimizer: { names: ['spec.embeddingServerRef.name'], kind: 'EmbeddingServer', resolve: optimizer },
  oidc: reference({
    field: 'spec.incomingAuth.oidcConfigRef',
    kind: 'MCPOIDCConfig',
    condition: oidcCondition,
    hash: 'oidcConfigHash',
    isRead: ({ context }) => context.spec.incomingAuth.type === 'oidc',
    toConfig(config, field, { context: { namespace }, needs, resource: defaultResource }) {
      const clientSecretEnv = 'VMCP_OIDC_CLIENT_SECRET'
      return { value: oidcPart(config, field, { namespace, defaultResource, clientSecretEnv, needs }) }
    },
  }),
  issuers: {
    names: ['spec.incomingAuth.oidcConfigRefs[].name'],
    kind: 'MCPOIDCConfig',
    resolve({
      context,
      needs,
      resource: defaultResource,
    }: VirtualServerTarget): ConfigPart<ResolvedIssuers | undefined> {
      const { type, oidcConfigRefs } = context.spec.incomingAuth
      if (type !== 'oidc' || !oidcConfigRefs) return { value: undefined }
      const { namespace } = context
      const clientSecretEnv = 'VMCP_OIDC_CLIENT_SECRET'
      return resolveIssuers(context, oidcConfigRefs, { namespace, defaultResource, clientSecretEnv, needs })
    },
  },
  authz: reference({
    field: 'spec.incomingAuth.authzConfigRef',
    kind: 'MCPAuthzConfig',
    condition: authzCondition,
    hash: 'authzConfigHash',
    toConfig: (config) => sharedPolicies(config),
    otherwise: ({ context, needs }) => resourceAuthz(context.spec.incomingAuth.authzConfig, context, needs),
  }),
  telemetry: reference({
    field: 'spec.telemetryConfigRef',
    kind: 'MCPTelemetryConfig',
    condition: telemetryCondition,
    hash: 'telemetryConfigHash',
    toConfig: (config, field, target) => ({ value: telemetryPart(config, field, target) }),
    otherwise: ({ context }) => ({ value: ownTelemetry(context.spec.config?.telemetry) }),
  }),
  webhooks: reference({
    field: 'spec.webhookConfigRef',
    kind: 'MCPWebhookConfig',
    condition: webhookCondition,
    hash: 'webhookConfigHash',
    toConfig: (config, _field, { needs }) => ({ value: webhooksPart(config, needs) }),
  }),
  aggregation: {
    names: ['spec.config.aggregation.tools[].toolConfigRef.name'],
    kind: 'MCPToolConfig',
    resolve: aggregation,
  },
  outgoing: {
    names: [
      'spec.outgoingAuth.default.externalAuthConfigRef.name',
      'spec.outgoingAuth.backends{}.externalAuthConfigRef.name',
      // The configurations that members refer to.
      'status.discoveredBackends[].authConfigRef',
    ],
    kind: 'MCPExternalAuthConfig',
    resolve: ({ context, needs }: VirtualServerTarget) => ({ value: outgoingAuth(context, needs) }),
  },
} as const

/** Returns inline and referenced workflows. */
function compositeTools({ context }: VirtualServerTarget): ConfigPart<readonly CompositeTool[]> {
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
  const limitViolation = refs.length > 0 ? sumViolation(tools, inline.length) : undefined
  return limitViolation === undefined ? { value: tools } : failed('CompositeToolRefInvalid', limitViolation)
}

/** Checks all workflows against the server's shared limits, which individually valid workflows may exceed together. */
function sumViolation(tools: readonly CompositeTool[], inline: number): string | undefined {
  const budget = new CheckBudget()
  for (const [index, tool] of tools.entries()) {
    const path = index < inline ? `spec.config.compositeTools[${index}]` : `workflow ${tool.name}: spec`
    const [first] = workflowViolations(tool, path, budget)
    if (first) return formatViolations([first])
  }
  return undefined
}

/** Returns the optimizer's settings with the embedding server's address; undefined without an optimizer. */
function optimizer({ context }: VirtualServerTarget): ConfigPart<Optimizer | undefined> {
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
      'config.optimizer.embeddingService is ignored because embeddingServerRef is set',
    )
  }
  return { value: { ...(own ?? optimizerDefaults), embeddingService: part.value ?? '' } }
}

/** Settings for an optimizer that is enabled only by a reference. */
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

interface AggregationResult {
  readonly aggregation: Aggregation
  /**
   * Failures, keyed by backend name. Excludes these backends, because a backend without its filter would expose all of
   * its tools.
   */
  readonly failures: ReadonlyMap<string, SyncFailure>
}

/** Returns the aggregation with every MCPToolConfig resolved. A reference replaces the filter and the overrides. */
function aggregation({ context }: VirtualServerTarget): ConfigPart<AggregationResult> {
  const own = context.parent.spec.config?.aggregation ?? aggregationDefaults
  const tools: NonNullable<Aggregation['tools']>[number][] = []
  const failures = new Map<string, SyncFailure>()
  const reserved = reservedNames(context.parent.spec)
  /** Tools that the server skips because their names are reserved. */
  const skipped: SyncFailure[] = []
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
      skipped.push({ reason: toolCondition.notValid, message: `${named}; the tool is skipped` })
    }
    const { filter: _filter, overrides: _overrides, ...settings } = rest
    tools.push({
      ...settings,
      ...(spec.toolsFilter && spec.toolsFilter.length > 0 && { filter: spec.toolsFilter }),
      ...(spec.toolsOverride && { overrides: spec.toolsOverride }),
    })
  }
  if (isReferring) checkToolConfigs(context, [...failures.values(), ...skipped])
  return { value: { aggregation: { ...own, ...(own.tools && { tools }) }, failures } }
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

/** Returns the deprecated settings in spec.config. */
function ownTelemetry(own: Telemetry | undefined): Telemetry | undefined {
  const headers = literalHeaders(own?.headers)
  return own && headers ? { ...own, headers } : own
}

/** Returns the names of the server's own tools. A reference to an embedding server enables tool search. */
export function reservedNames({ config, embeddingServerRef }: VirtualMCPServerSpec): ReadonlySet<string> {
  return reservedTools({ optimizer: config?.optimizer ?? embeddingServerRef, codeMode: config?.codeMode })
}
