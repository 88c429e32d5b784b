/**
 * Builds a virtual server's config.yaml: spec.config with every reference resolved.
 *
 * Separates the settings that the running server reloads from the settings that restart the pods when they change.
 */
import type { IncomingAuthFile, input } from '../../../../schemas/index.ts'
import { consoleStartSettings, hashOf } from '../../../../schemas/index.ts'
import type { SyncContext } from '../../../sync/context.ts'
import type { PodNeeds } from '../../../runtime-config/needs.ts'
import { sessionStoragePart } from '../../../runtime-config/session-storage.ts'
import type { ResolvedReferences } from '../../../references/reference.ts'
import type { virtualServerReferences } from '../references.ts'
import type { ResolvedBackend } from './backends.ts'
import { consolePart } from './console.ts'
import { toolLocks } from './tool-locks.ts'
import { definedFields } from '../../../base/kube.ts'

interface ConfigParts {
  /** The values that are resolved from references. */
  readonly values: ResolvedReferences<typeof virtualServerReferences>['values']
  readonly auth: IncomingAuthFile
  readonly backends: readonly ResolvedBackend[]
  /** The address that clients in the cluster use. */
  readonly address: string
  /** The address that clients use. */
  readonly publicAddress: string
}

/** Returns the content of the configuration file. The session storage can add entries to `needs`. */
export function configOf(
  context: SyncContext<'VirtualMCPServer'>,
  { values, auth, backends, address, publicAddress }: ConfigParts,
  needs: PodNeeds,
): input.VmcpFile {
  const { parent, name, namespace, settings } = context
  const { spec } = parent
  const own = spec.config ?? {}
  const usable = backends.flatMap((resolved) => (resolved.backend ? [resolved] : []))
  const strategies = usable.flatMap(({ name, strategy }) => (strategy ? [[name, strategy] as const] : []))
  const storage = spec.sessionStorage ?? undefined
  return definedFields({
    name: own.name ?? name,
    groupRef: spec.groupRef.name,
    metadata: own.metadata,
    incomingAuth: auth,
    outgoingAuth: definedFields({
      source: spec.outgoingAuth?.source ?? 'discovered',
      default: values.outgoing?.defaultStrategy,
      backends: strategies.length > 0 ? Object.fromEntries(strategies) : undefined,
    }),
    aggregation: values.aggregation?.aggregation,
    audit: own.audit && { ...own.audit, component: own.audit.component ?? name },
    backends: usable.flatMap(({ backend }) => (backend ? [backend] : [])),
    codeMode: own.codeMode,
    extensions: own.extensions,
    guardrails: own.guardrails,
    console: consolePart(own.console, address),
    compositeTools: values.compositeTools?.length ? values.compositeTools : undefined,
    operational: own.operational,
    optimizer: values.optimizer,
    publish: spec.publish && { ...spec.publish, url: publicAddress },
    passthroughHeaders: spec.passthroughHeaders ?? own.passthroughHeaders,
    quotas: own.quotas,
    costs: own.costs,
    rateLimiting: own.rateLimiting,
    sessionStorage:
      storage || !own.sessionStorage
        ? sessionStoragePart(storage, settings, { scope: 'vmcp', namespace, name }, needs)
        : own.sessionStorage,
    pinning: own.pinning,
    toolLocks: toolLocks(context, backends),
    telemetry: values.telemetry,
    webhooks: values.webhooks,
  })
}

/** The settings that the running server reloads without a restart. */
const hotReloadable = [
  'aggregation',
  'backends',
  'codeMode',
  'compositeTools',
  'costs',
  'extensions',
  'guardrails',
  'incomingAuth',
  'operational',
  'optimizer',
  'outgoingAuth',
  'passthroughHeaders',
  'pinning',
  'publish',
  'quotas',
  'rateLimiting',
  'toolLocks',
  'webhooks',
] as const

/** Returns a hash that changes when the server must restart. */
export function restartHash(
  config: input.VmcpFile,
  authServer: input.AuthServerFile | undefined,
  revision: string | undefined,
): string {
  const rest: Record<string, unknown> = { ...config, console: consoleStartSettings(config.console) }
  for (const key of hotReloadable) delete rest[key]
  // The running server rereads its list of clients.
  const { clients: _, ...server } = authServer ?? {}
  return hashOf({ ...rest, authServer: authServer && server, revision })
}
