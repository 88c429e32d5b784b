/**
 * A virtual server as plain data, on which explanations are based. Contains the target of each name, the rules that
 * hide a name, and the state of the backends. A snapshot is built from a running server, or from a configuration and
 * the lists of its backends.
 */
import { prefixedName, reservedTools } from '../../../../schemas/index.ts'
import type { VmcpConfig } from '../../../config/index.ts'
import { type Cause, causeFix, causeText, isSignInRequired } from '../../../observe/index.ts'
import { JsonObject } from '../../../mcp/index.ts'
import { type Action, hintsIn, externalPoint, methodOf, type Origin } from '../../../policy/index.ts'
import type { BackendState } from '../engine/backend-state.ts'
import { toolServer } from '../../backends/server-info.ts'
import { Catalog } from '../../catalog/catalog.ts'
import { checkItem, callableTool } from '../../catalog/items/check.ts'
import { noErrors } from '../../catalog/items/errors.ts'
import type { CatalogEntry } from '../../model/catalog/entry.ts'
import type { QuotaUsage } from '../../features/quotas/guard.ts'
import { hidingRuleOf, withheldReason } from './hidden.ts'
import { explainGuardrails } from '../../features/guardrails/explain.ts'

export type ServerSnapshot = ReturnType<typeof snapshotOf>

export interface SnapshotParts {
  readonly config: VmcpConfig
  readonly catalog: Catalog
  readonly states: readonly Pick<BackendState, 'name' | 'authType' | 'health' | 'excluded'>[]
  /** Names of the backends that have been listed. */
  readonly listed: ReadonlySet<string>
  /** True if the lists come from a file and were not compared with the locks. */
  readonly offline?: boolean
  /** Usage of the quotas. By default, no quota has been used. */
  readonly used?: readonly QuotaUsage[]
}

export function snapshotOf({ config, catalog, states, listed, offline = false, used = [] }: SnapshotParts) {
  const { authz } = config.incomingAuth
  const point = externalPoint(authz)
  return {
    server: config.name,
    items: itemsOf(config, catalog),
    resourceKey: (uri: string) => catalog.resourceAt(uri)?.key,
    conflicts: catalog.problems.map(({ subject, message }) => ({ name: subject, message })),
    own: [...reservedTools(config)],
    backends: states.map(({ name, authType, health, excluded }) => ({
      name,
      health: health.status,
      since:
        health.lastTransitionAt === undefined ? undefined : new Date(health.lastTransitionAt).toISOString(),
      ...(health.status !== 'healthy' && health.lastError && explainedCause(health.lastError, name)),
      circuit: health.circuit?.state,
      authType,
      excluded,
      listed: listed.has(name),
    })),
    claimsOf: authz?.type === 'cedar' ? authz.primaryUpstreamProvider : undefined,
    locked: offline ? lockedBackends(config) : [],
    policies: authz?.type === 'cedar' ? { ...authz, serverName: config.name } : undefined,
    decisionPoint: point && { serverName: config.name, point },
    webhooks: config.webhooks,
    guardrails: (action: Action, { backend, original }: Origin) =>
      explainGuardrails(config.guardrails, { method: methodOf[action], backend, original }),
    limits: limitsOf(config),
    quotas: config.quotas ?? [],
    costs: config.costs ?? {},
    quotaShares: Object.fromEntries(used.map(({ quota, share }) => [quota.name, share])),
    searchOnly: config.optimizer !== undefined,
    prefixes: prefixesOf(
      config,
      states.map(({ name }) => name),
    ),
  }
}

/** `error` is the cause, and `fix` is the next step. */
function explainedCause(cause: Cause, backend: string) {
  const fix = causeFix(cause, backend)
  return { error: causeText(cause), fix, requiresSignIn: isSignInRequired(cause) }
}

function itemsOf(config: VmcpConfig, catalog: Catalog) {
  const hidden = hidingRuleOf(config)
  const plain = (action: 'get_prompt' | 'read_resource', entries: readonly CatalogEntry[]) =>
    entries.map(({ key, backend, original }) => ({ action, name: key, backend, original }))
  return [
    ...[...catalog.tools.values()].map((entry) => ({
      action: 'call_tool' as const,
      name: entry.key,
      alias: catalog.aliases.aliasByName.get(entry.key),
      backend: entry.backend,
      original: entry.original,
      hidden: hidden(entry),
      hints: hintsIn(entry.annotations, new JsonObject(entry.json).value('_meta')),
    })),
    ...[...catalog.refusedTools.values()].map(({ key, backend, original, refused }) => ({
      action: 'call_tool' as const,
      name: key,
      alias: catalog.aliases.aliasByName.get(key),
      backend,
      original,
      ...withheldReason(refused),
    })),
    ...plain('get_prompt', catalog.promptList),
    ...[...catalog.refusedPrompts.values()].map(({ key, backend, original, refused }) => ({
      action: 'get_prompt' as const,
      name: key,
      backend,
      original,
      ...withheldReason(refused),
    })),
    ...plain('read_resource', [...catalog.resourceList, ...catalog.templateList]),
    ...[...catalog.refusedResources.values(), ...catalog.refusedTemplates.values()].map(
      ({ key, backend, original, refused }) => ({
        action: 'read_resource' as const,
        name: key,
        backend,
        original,
        ...withheldReason(refused),
      }),
    ),
    ...unlistedWorkflows(config, catalog),
  ]
}

/**
 * Returns the workflows that the catalog does not contain. Gatehouse cannot determine whether clients may call the
 * steps of these workflows.
 */
function unlistedWorkflows({ compositeTools = [] }: VmcpConfig, { tools }: Catalog) {
  return compositeTools
    .filter(({ name }) => !tools.has(name))
    .map(({ name }) => ({ action: 'call_tool' as const, name, backend: '', original: name }))
}

function lockedBackends({ toolLocks = [] }: VmcpConfig): readonly string[] {
  return [...new Set(toolLocks.map(({ backend }) => backend))]
}

function limitsOf({ rateLimiting }: VmcpConfig) {
  const { shared, perUser, tools = [] } = rateLimiting ?? {}
  const rows = [
    { tool: undefined, whom: 'all callers together', bucket: shared },
    { tool: undefined, whom: 'each user', bucket: perUser },
    ...tools.flatMap(({ name, shared: all, perUser: each }) => [
      { tool: name, whom: `all callers of ${name} together`, bucket: all },
      { tool: name, whom: `each user of ${name}`, bucket: each },
    ]),
  ]
  return rows.flatMap(({ tool, whom, bucket }) =>
    bucket
      ? [{ tool, text: `${whom}: ${bucket.maxTokens} calls, refilled every ${bucket.refillPeriod}` }]
      : [],
  )
}

/** Returns each backend's prefix. Empty if names have no prefix. */
function prefixesOf({ aggregation }: VmcpConfig, backends: readonly string[]): Record<string, string> {
  const { conflictResolution, conflictResolutionConfig } = aggregation
  if (conflictResolution !== 'prefix') return {}
  return Object.fromEntries(
    backends.map((name) => [name, prefixedName(conflictResolutionConfig.prefixFormat, name, '')]),
  )
}

/** A backend's state in a file. */
export interface BackendStateInput {
  /** The backend's tools as JSON text. Undefined if the tools are unknown. */
  readonly tools?: readonly string[] | undefined
  readonly health?: BackendState['health']['status'] | undefined
  /** Error category such as `timeout`. */
  readonly error?: string | undefined
  readonly circuit?: 'closed' | 'open' | 'half-open' | undefined
}

/** Returns the snapshot of a configuration with the given backend states. Contacts no backends. */
export function snapshotOffline(
  config: VmcpConfig,
  given: Readonly<Record<string, BackendStateInput>>,
): ServerSnapshot {
  const backends = config.backends ?? []
  const listings = backends.flatMap(({ name }, serial) => {
    const tools = given[name]?.tools
    return tools ? [listingOf(name, serial, tools)] : []
  })
  const catalog = new Catalog(listings, config.aggregation, undefined, reservedTools(config))
  const states = backends.map(({ name }) => {
    const { health = 'unknown', error, circuit } = given[name] ?? {}
    return {
      name,
      authType:
        config.outgoingAuth.backends?.[name]?.type ?? config.outgoingAuth.default?.type ?? 'unauthenticated',
      excluded: undefined,
      health: {
        status: health,
        consecutiveFailures: 0,
        lastCheckAt: undefined,
        lastErrorCategory: error,
        lastTransitionAt: undefined,
        lastError: error === undefined ? undefined : { category: error, at: 0 },
        circuit: circuit === undefined ? undefined : { state: circuit, changedAt: 0 },
      },
    }
  })
  return snapshotOf({
    config,
    catalog,
    states,
    listed: new Set(listings.map(({ backend }) => backend)),
    offline: true,
  })
}

function listingOf(backend: string, serial: number, tools: readonly string[]) {
  return {
    backend,
    serial,
    server: toolServer(''),
    tools: tools.flatMap((json) => {
      const item = checkItem('tools', Buffer.from(json))
      if ('failure' in item) return []
      const tool = callableTool(item)
      return typeof tool === 'string' ? [] : [tool]
    }),
    resources: [],
    templates: [],
    prompts: [],
    violations: noErrors,
  }
}
