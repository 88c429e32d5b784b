/**
 * `spec.exposure`: checks whether a server may use its host name, and reports the state of its route.
 *
 * A host name belongs to one server. Within a namespace, the oldest server owns a host name. Across namespaces, the
 * Gateway or the Ingress controller determines the owner.
 */
import { byText, type Exposure } from '../../../schemas/index.ts'
import { publicOrigin, route, type RouteTarget } from '../../children/serving/exposure.ts'
import type { ChildMeta } from '../../children/objects.ts'
import { type Fields, fieldsOf, isFields, type KubeObject, listOf } from '../../base/kube.ts'
import type { SyncFailure } from '../../sync/conditions.ts'
import type { AnyContext } from '../../sync/context.ts'

type Context = AnyContext & { readonly spec: { readonly exposure?: Exposure | undefined } }
type ExposedServer = Pick<Context, 'settings' | 'spec'>

/** Kinds with a `spec.exposure` field. */
export const exposedKinds = ['MCPCatalogue', 'MCPServer', 'MCPRemoteProxy', 'VirtualMCPServer'] as const

/** Returns the related objects that `customize` must request. `spec` may be invalid. */
export function exposureRelated(spec: Fields): {
  readonly kinds: readonly string[]
  readonly secret: unknown
} {
  const exposure = spec['exposure']
  return {
    kinds: exposure === undefined ? [] : exposedKinds,
    secret: fieldsOf(fieldsOf(exposure)['ingress'])['tlsSecretName'],
  }
}

/** Returns the effective exposure. `gatehouse dev` exposes nothing, because it listens on the loopback interface. */
export function exposureOf({ settings, spec }: ExposedServer): Exposure | undefined {
  return settings.allowLoopback ? undefined : spec.exposure
}

/** Returns the public URL, with the path from the in-cluster URL. */
export function externalUrl(server: ExposedServer, url: string): string | undefined {
  const own = exposureOf(server)
  return own && `${publicOrigin(own)}${new URL(url).pathname}`
}

/**
 * Builds the route. Returns no objects when another server owns the host name or the cluster does not support the
 * route.
 */
export function exposureChildren(context: Context, meta: ChildMeta, target: RouteTarget): KubeObject[] {
  const own = exposureOf(context)
  return own && !exposureFailure(context, own) ? [route(meta, own, target)] : []
}

/** Clients see these URLs, which must contain the host name. Keyed by description. */
export type ClientUrls = Readonly<Record<string, string | undefined>>

/** Sets the condition ExposureReady. Leaves the condition absent when nothing is exposed. */
export function checkExposure(context: Context, name: string, urls: ClientUrls): void {
  const own = exposureOf(context)
  if (!own) return
  const failure =
    exposureFailure(context, own) ??
    mismatch(own, urls) ??
    missingSecret(context, own) ??
    routeFailure(context, own, name)
  const message = `Clients reach the server at ${publicOrigin(own)}`
  context.conditions.check('ExposureReady', failure, 'Exposed', message)
}

function exposureFailure(context: Context, exposure: Exposure): SyncFailure | undefined {
  if (exposure.gateway && !context.settings.gatewayApi) {
    const message =
      'HTTPRoutes are disabled in this installation: install the Gateway API and set integrations.gatewayAPI, or use spec.exposure.ingress'
    return { reason: 'GatewayAPINotEnabled', message }
  }
  const owner = olderOwnerOf(context, exposure.hostname)
  if (!owner) return undefined
  const { kind, metadata } = owner
  const message = `${exposure.hostname} already belongs to ${kind} ${metadata.name}, which is older`
  return { reason: 'HostnameClaimed', message }
}

/** Finds an older server in the namespace with this host name. */
function olderOwnerOf(context: Context, hostname: string): KubeObject | undefined {
  const { stored } = context
  const others = exposedKinds
    .flatMap((kind) => context.members(kind))
    .filter(({ kind, metadata }) => kind !== stored.kind || metadata.name !== stored.metadata.name)
    .filter((object) => fieldsOf(fieldsOf(object['spec'])['exposure'])['hostname'] === hostname)
  return others.sort((a, b) => byText(order(a), order(b))).find((other) => order(other) < order(stored))
}

function order({ kind, metadata }: KubeObject): string {
  return `${metadata.creationTimestamp ?? ''} ${kind} ${metadata.name}`
}

function mismatch({ hostname }: Exposure, urls: ClientUrls): SyncFailure | undefined {
  const wrong = Object.entries(urls).filter(
    ([, url]) => url !== undefined && URL.canParse(url) && new URL(url).hostname !== hostname,
  )
  if (wrong.length === 0) return undefined
  const names = wrong.map(([what]) => what).join(' and ')
  return { reason: 'PublicURLMismatch', message: `${names} must have the host name ${hostname}` }
}

function missingSecret(context: Context, { ingress }: Exposure): SyncFailure | undefined {
  const name = ingress?.tlsSecretName
  if (name === undefined) return undefined
  const missing = context.missingSecrets(['tls.crt', 'tls.key'].map((key) => ({ name, key })))
  if (missing.length === 0) return undefined
  return {
    reason: 'TLSSecretNotFound',
    message: `spec.exposure.ingress.tlsSecretName: not found: ${missing.join('; ')}`,
  }
}

const pending = 'ExposurePending'

function routeFailure(context: Context, { gateway }: Exposure, name: string): SyncFailure | undefined {
  const child = context.child(gateway ? 'HTTPRoute' : 'Ingress', name)
  if (!child) return { reason: pending, message: `The ${gateway ? 'HTTPRoute' : 'Ingress'} is being created` }
  return gateway ? gatewayFailure(child) : ingressFailure(child)
}

function ingressFailure(child: KubeObject): SyncFailure | undefined {
  const addresses = listOf(fieldsOf(fieldsOf(child['status'])['loadBalancer'])['ingress'])
  if (addresses.length > 0) return undefined
  return { reason: pending, message: 'No Ingress controller has accepted the Ingress yet' }
}

/** Returns the Gateway's own message for the first failed condition. */
function gatewayFailure(child: KubeObject): SyncFailure | undefined {
  const conditions = listOf(fieldsOf(child['status'])['parents'])
    .filter(isFields)
    .flatMap(({ conditions }) => listOf(conditions).filter(isFields))
    .filter(({ type }) => type === 'Accepted' || type === 'ResolvedRefs')
  if (conditions.length === 0)
    return { reason: pending, message: 'No Gateway has accepted the HTTPRoute yet' }
  const failed = conditions.find(({ status }) => status !== 'True')
  if (!failed) return undefined
  const { reason, message } = failed
  return {
    reason: typeof reason === 'string' && reason !== '' ? reason : pending,
    message: typeof message === 'string' ? message : 'The Gateway rejected the HTTPRoute',
  }
}
