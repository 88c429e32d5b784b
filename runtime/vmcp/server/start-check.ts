/**
 * Configuration checks that need more than the text of the configuration, such as environment variables, files and
 * strategies. The server runs these checks before it starts and before it applies a changed file. `gatehouse vmcp
 * validate` runs all checks.
 *
 * An error prevents the server from starting, or one backend from being served. Both commands warn about settings that
 * have no effect, such as a setting for an unknown backend.
 */
import type { ServedCertificate } from '../../../schemas/certificate/index.ts'
import { cedarViolations, cedarWarnings, namedOrigins } from '../../../schemas/cedar/index.ts'
import {
  formatViolations,
  GatehouseError,
  type NamingSettings,
  unknownBackends,
} from '../../../schemas/index.ts'
import { guardrailViolations, guardrailWarnings } from '../../../schemas/guardrails/index.ts'
import { workflowWarnings } from '../../../schemas/workflow/index.ts'
import { type ExcludedBackend, type VmcpConfig, vmcpVariableViolations } from '../../config/index.ts'
import {
  type AuthServerFacts,
  certificateViolations,
  type EmbeddedAuthServer,
  type IncomingConfig,
  incomingViolations as issuerProblems,
} from '../../incoming/index.ts'
import { silentLog } from '../../net/index.ts'
import { auditViolations, telemetryViolations } from '../../observe/index.ts'
import type { UpstreamTokens } from '../../outgoing/index.ts'
import { redisViolations } from '../../store/index.ts'
import { externalPoint, externalViolations, webhookViolations } from '../../policy/index.ts'
import { findBrokenBackends, injectionViolation } from '../backends/backend-settings.ts'
import { compileLocks } from '../catalog/pinning/compile.ts'
import { codeModeViolations } from '../features/scripts/index.ts'
import { openApiWorker } from '../backends/openapi/convert.ts'
import { embeddedViolations } from './embedded-auth.ts'
import { incomingConfig } from './incoming-config.ts'
import { optimizerViolations } from '../features/search/index.ts'
import { type BackendStrategies, makeOutgoingAuth, strategyOf } from '../backends/outgoing-auth.ts'
import { sessionRedisSettings } from '../clients/sessions/storage.ts'
import { workerViolations } from '../../process/index.ts'
import { workflowErrors, workflowsBeyond, workflowWorker } from '../features/workflows/index.ts'

type Environment = Readonly<Record<string, string | undefined>>

/** The environment against which a configuration is checked. */
export interface StartParts {
  readonly env: Environment
  /** Tokens of the embedded authorization server. `providersOnly` is sufficient for checks. */
  readonly upstreamTokens?: UpstreamTokens | undefined
  /** Settings for the embedded authorization server. */
  readonly authServer?: AuthServerFacts | undefined
  /** True if the listener asks clients for certificates. Undefined if the listener is not known. */
  readonly clientCertificates?: boolean | undefined
}

/** Returns the environment against which a running server's configuration is checked. */
export function startParts(running: {
  readonly env?: Environment | undefined
  readonly upstreamTokens?: UpstreamTokens | undefined
  readonly authServer?: EmbeddedAuthServer | undefined
  readonly certificate?: ServedCertificate | undefined
}): StartParts {
  const { env = {}, upstreamTokens, authServer, certificate } = running
  const clientCertificates = certificate?.hasClientAuthority ?? false
  return { env, upstreamTokens, authServer: authServer?.config, clientCertificates }
}

/**
 * Throws an INVALID_CONFIG error that lists every problem if the server cannot start. Problems with individual backends
 * do not prevent the server from starting. These backends are excluded, in addition to the backends in `excluded`.
 */
export function checkStart(
  config: VmcpConfig,
  parts: StartParts,
  excluded: readonly ExcludedBackend[] = [],
): void {
  const problems = serverViolations(config, parts)
  if (problems.length > 0) throw invalidConfig([...problems, ...backendViolations(config, parts, excluded)])
}

/** Throws an INVALID_CONFIG error that lists every problem with the configuration and with individual backends. */
export function checkAll(
  config: VmcpConfig,
  parts: StartParts,
  excluded: readonly ExcludedBackend[] = [],
): void {
  const problems = [...serverViolations(config, parts), ...backendViolations(config, parts, excluded)]
  if (problems.length > 0) throw invalidConfig(problems)
}

/**
 * Lists settings that have no effect or are rarely intended, one line each. Commands that check a file use this list. A
 * running server instead logs `startWarnings`, and reports unknown names and workflows when its catalog changes.
 */
export function allWarnings(
  config: VmcpConfig,
  parts: StartParts,
  excluded: readonly ExcludedBackend[] = [],
): readonly string[] {
  return [
    ...startWarnings(config, parts),
    ...(config.pinning?.noLock === 'pin' ? [keeperRule] : []),
    ...nameProblems(config, excluded),
    ...stepProblems(config, excluded),
    ...policyProblems(config, excluded),
    ...workflowsBeyond(config.compositeTools),
  ]
}

/**
 * Lists names in the settings that do not match a backend in the file, one line each. Returns an empty list for a file
 * without backends, because backends may be added later. `stepProblems` lists the names in workflow steps, which a
 * running server reports for its catalog.
 */
export function nameProblems(
  config: VmcpConfig,
  excluded: readonly ExcludedBackend[] = [],
): readonly string[] {
  const { outgoingAuth, aggregation, operational, quotas, costs, guardrails, webhooks, backends } = config
  const known = excluded.filter(({ isUnknown }) => !isUnknown)
  return [
    ...excluded.flatMap(({ name, problems, isUnknown }) =>
      isUnknown ? problems.map((problem) => `${problem}; unknown backend ${JSON.stringify(name)}`) : [],
    ),
    ...unknownNames({ outgoingAuth, aggregation, operational, quotas, costs, guardrails, webhooks }, [
      ...(backends ?? []),
      ...known,
    ]),
    ...lockProblems(config, known),
  ]
}

function stepProblems(
  { aggregation, compositeTools, backends }: VmcpConfig,
  excluded: readonly ExcludedBackend[],
): readonly string[] {
  const { conflictResolution, conflictResolutionConfig } = aggregation
  const { prefixFormat } = conflictResolutionConfig
  const naming = { conflictResolution, conflictResolutionConfig: { prefixFormat } }
  return unknownNames({ aggregation: naming, compositeTools }, [...(backends ?? []), ...excluded])
}

/**
 * Lists unknown backends in policies. A running server does not report unknown backends, because servers may share
 * policies.
 */
function policyProblems(
  { incomingAuth: { authz }, backends }: VmcpConfig,
  excluded: readonly ExcludedBackend[],
): readonly string[] {
  if (authz?.type !== 'cedar') return []
  const origins = namedOrigins(authz, 'incomingAuth.authz')
  return unknownNames({ origins }, [...(backends ?? []), ...excluded])
}

function unknownNames(
  settings: NamingSettings,
  backends: readonly { readonly name: string }[],
): readonly string[] {
  if (backends.length === 0) return []
  const names = backends.map(({ name }) => name)
  return unknownBackends(settings, names).map((violation) => formatViolations([violation]))
}

function serverViolations(
  config: VmcpConfig,
  { env, authServer, clientCertificates }: StartParts,
): readonly string[] {
  return [
    ...vmcpVariableViolations(env),
    ...incomingViolations(config, env),
    ...(authServer ? embeddedViolations(config, authServer) : []),
    ...(authServer && clientCertificates !== undefined
      ? certificateViolations(authServer, { clientCertificates })
      : []),
    ...policyViolations(config),
    ...webhookViolations(config.webhooks, { env }),
    ...guardrailViolations(config.guardrails, 'guardrails').map((one) => formatViolations([one])),
    ...auditViolations(config.audit),
    ...telemetryViolations(config.telemetry, env),
    ...storageViolations(config, env),
    ...optimizerViolations(config.optimizer, env),
    ...codeModeViolations(config.codeMode),
    ...workflowErrors(config.compositeTools),
    ...evaluationViolations(config),
    ...(config.backends?.some(({ openapi }) => openapi) ? workerViolations(openApiWorker) : []),
    ...workersViolations(config),
  ]
}

function storageViolations(config: VmcpConfig, env: Environment): readonly string[] {
  const redis = sessionRedisSettings(config, env)
  return redis ? redisViolations(redis).map((line) => `sessionStorage: ${line}`) : []
}

/** Lists settings that require a single process. */
function workersViolations({ operational, console, pinning }: VmcpConfig): readonly string[] {
  const { workers = 1 } = operational
  if (workers === 1) return []
  const rule = `requires a single process, but operational.workers (--workers) is ${workers}`
  return [
    ...(console?.enabled ? [`console.enabled: the console ${rule}; use replicas`] : []),
    ...(pinning?.noLock === 'pin' ? [`pinning.noLock: pin ${rule}; write the locks first`] : []),
  ]
}

/** Lists problems with the worker that evaluates workflows and validates values against schemas. */
function evaluationViolations(config: VmcpConfig): readonly string[] {
  const { compositeTools, pinning, guardrails, webhooks } = config
  const users = [
    ...(compositeTools?.length ? ['compositeTools'] : []),
    ...(pinning ? ['pinning'] : []),
    ...(guardrails?.redact || guardrails?.mark ? ['guardrails'] : []),
    ...(webhooks?.mutating?.length ? ['webhooks'] : []),
  ]
  return users.flatMap((user) => workerViolations(workflowWorker).map((line) => `${user}: ${line}`))
}

/** Lists the problems that prevent individual backends from being served. */
function backendViolations(
  config: VmcpConfig,
  parts: StartParts,
  excluded: readonly ExcludedBackend[],
): readonly string[] {
  const known = excluded.flatMap(({ problems, isUnknown }) => (isUnknown ? [] : problems))
  const broken = withOutgoing(parts, (outgoing) =>
    findBrokenBackends(config, { outgoing, authServer: parts.authServer, log: silentLog }),
  )
  return [...known, ...(broken ?? []).flatMap(({ problems }) => problems)]
}

/**
 * Lists the problems with a default strategy that no backend uses. Unused entries for individual backends are reported
 * by name.
 */
function unusedDefault(config: VmcpConfig, parts: StartParts): readonly string[] {
  const field = 'outgoingAuth.default'
  const strategy = config.outgoingAuth.default
  const isUsed = (config.backends ?? []).some(({ name }) => strategyOf(name, config).field === field)
  if (!strategy || isUsed) return []
  const problems = withOutgoing(parts, (outgoing) => outgoing.strategyViolations(strategy, field)) ?? []
  const injection = injectionViolation(field, strategy, parts.authServer)
  return [...problems, ...(injection === undefined ? [] : [injection])].map(
    (problem) => `${problem}; no backend uses it`,
  )
}

/**
 * Returns undefined if the variables that switch strategies on or off have errors. A separate check reports these
 * errors.
 */
function withOutgoing<T>(
  { env, upstreamTokens }: StartParts,
  work: (outgoing: BackendStrategies) => T,
): T | undefined {
  if (vmcpVariableViolations(env).length > 0) return undefined
  const outgoing = makeOutgoingAuth(env, upstreamTokens, silentLog)
  try {
    return work(outgoing)
  } finally {
    void outgoing.close()
  }
}

/**
 * Rejects with an INVALID_CONFIG error that names the unusable tool locks. If the hooks found a lock to be invalid, the
 * lock blocks only its own backend. A running server never stops because of a lock. The server blocks the backend and
 * reports the problem.
 */
export async function checkToolLocks({ toolLocks = [] }: VmcpConfig): Promise<void> {
  const byBackend = Map.groupBy(
    toolLocks.filter(({ failure }) => failure === undefined),
    ({ backend }) => backend,
  )
  const problems: string[] = []
  for (const [backend, locks] of byBackend) {
    const { failure } = await compileLocks(backend, locks)
    if (failure !== undefined) problems.push(`toolLocks: lock for backend ${backend}: ${failure}`)
  }
  if (problems.length > 0) throw invalidConfig(problems)
}

/** Like `checkStart`, but also checks the tool locks. */
export async function checkStartWithLocks(...given: Parameters<typeof checkStart>): Promise<void> {
  checkStart(...given)
  await checkToolLocks(given[0])
}

const keeperRule =
  'pinning.noLock: pin requires a folder for locks on this machine; run gatehouse vmcp serve --pin-first FOLDER'

/** Throws INVALID_CONFIG if locks must be written but no folder for locks is configured. */
export function requireKeeper({ pinning }: VmcpConfig, keeper: unknown): void {
  if (pinning?.noLock === 'pin' && keeper === undefined) throw invalidConfig([keeperRule])
}

/** Lists locks for unknown backends, one line each. */
function lockProblems({ toolLocks = [], backends = [] }: VmcpConfig, excluded: readonly ExcludedBackend[]) {
  const names = new Set([...backends, ...excluded].map(({ name }) => name))
  const unknown = toolLocks.filter(({ backend }) => names.size > 0 && !names.has(backend))
  return [...new Set(unknown.map(({ backend }) => `toolLocks: unknown backend ${JSON.stringify(backend)}`))]
}

function invalidConfig(problems: readonly string[]): GatehouseError {
  const lines = [...new Set(problems)].map((line) => `  - ${line}`)
  return new GatehouseError('INVALID_CONFIG', { detail: `invalid configuration:\n${lines.join('\n')}` })
}

/** Lists settings that are valid but rarely intended, one line each. */
export function startWarnings(config: VmcpConfig, parts: StartParts): string[] {
  const { compositeTools = [], console, guardrails, incomingAuth, operational } = config
  const workflows = compositeTools.flatMap(workflowWarnings).map((line) => `compositeTools: ${line}`)
  const guardrailLines = guardrailWarnings(guardrails, 'guardrails', operational?.maxResultBytes).map((one) =>
    formatViolations([one]),
  )
  return [
    ...workflows,
    ...guardrailLines,
    ...consoleWarnings(console, incomingAuth),
    ...consoleNameWarnings(config),
    ...quotaWarnings(config),
    ...unusedDefault(config, parts),
  ]
}

function quotaWarnings({ quotas = [], costs, sessionStorage }: VmcpConfig): string[] {
  const inMemory =
    quotas.length > 0 && sessionStorage?.provider !== 'redis'
      ? [
          'quotas: counters are kept in memory and lost on restart, and each replica counts separately; use sessionStorage with provider redis to persist them',
        ]
      : []
  const unused =
    costs !== undefined && !quotas.some(({ unit }) => unit === 'cost')
      ? ['costs: has no effect, because no quota uses the unit cost']
      : []
  return [...inMemory, ...unused]
}

/**
 * Warns if the console and the server use different issuers. A user's identity includes the issuer. Policies and "own
 * calls" would therefore treat one person as two users.
 */
function consoleWarnings(
  console: VmcpConfig['console'],
  { type, oidc }: VmcpConfig['incomingAuth'],
): string[] {
  const issuer = console?.enabled ? console.auth?.issuer : undefined
  const incoming = oidc?.issuer
  if (issuer === undefined || type === 'anonymous' || incoming === undefined || issuer === incoming) return []
  return [
    `console.auth.issuer: ${issuer} differs from the issuer of incomingAuth (${incoming}): console users and clients are different users, so the console does not show users their own calls and sessions, and policies see different claims when a tool is tried`,
  ]
}

/** Lists unknown names in the console policies. Commands that read a file warn about these names, as admission does. */
function consoleNameWarnings({ console, name }: VmcpConfig): string[] {
  if (!console?.enabled || !console.authz) return []
  return cedarWarnings({ ...console.authz, consoleOf: name }).map((line) => `console.authz.${line}`)
}

function incomingViolations(config: VmcpConfig, env: Environment): string[] {
  let incoming: IncomingConfig
  try {
    incoming = incomingConfig(config, env, silentLog)
  } catch (error) {
    return [error instanceof Error ? error.message : String(error)]
  }
  return incoming.type === 'oidc' ? issuerProblems(incoming).map((line) => `incomingAuth.${line}`) : []
}

function policyViolations({ console, incomingAuth }: VmcpConfig): string[] {
  return [...clientPolicies(incomingAuth), ...consolePolicies(console)]
}

/**
 * Lists errors in the console's policies. Such an error prevents the server from starting or reloading, and never gives
 * users more access to the console.
 */
function consolePolicies(console: VmcpConfig['console']): string[] {
  if (!console?.enabled || !console.authz) return []
  const { policies, entitiesJson } = console.authz
  return cedarViolations(policies, entitiesJson).map(
    ({ path, message }) => `console.authz.${path}: ${message}`,
  )
}

function clientPolicies(incomingAuth: VmcpConfig['incomingAuth']): string[] {
  const { authz } = incomingAuth
  const point = externalPoint(authz)
  if (point) return [...externalViolations(point)]
  if (authz?.type !== 'cedar') return []
  const { policies = [], entitiesJson, shadowPolicies, shadowReplaces } = authz
  return cedarViolations(policies, entitiesJson, shadowPolicies, shadowReplaces).map(
    ({ path, message }) => `incomingAuth.authz.${path}: ${message}`,
  )
}
