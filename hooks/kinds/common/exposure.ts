/**
 * `spec.exposure`: whether a server can have its host name, and what became of the route.
 *
 * A host name is of one server. Among the servers of a namespace the oldest has it; what other namespaces claim, the
 * Gateway or the Ingress controller decides.
 */
import { byText, type Exposure } from '../../../schemas/index.ts'
import { publicOrigin, route, type RouteTarget } from '../../children/serving/exposure.ts'
import type { ChildMeta } from '../../children/objects.ts'
import { type Fields, fieldsOf, isFields, type KubeObject, listOf } from '../../base/kube.ts'
import type { SyncFailure } from '../../sync/conditions.ts'
import type { AnyContext } from '../../sync/context.ts'

type Context = AnyContext & { readonly spec: { readonly exposure?: Exposure | undefined } }

/** Kinds that have the field. */
export const exposedKinds = ['MCPServer', 'MCPRemoteProxy', 'VirtualMCPServer'] as const

/** What `customize` asks for beside the rest: of a spec that nobody has checked yet. */
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

/** The one that counts. `gatehouse dev` serves on the loopback interface: nothing is exposed there. */
export function exposureOf({ settings, spec }: Context): Exposure | undefined {
  return settings.allowLoopback ? undefined : spec.exposure
}

/** The public address, with the path of the address inside the cluster. */
export function externalUrl(context: Context, url: string): string | undefined {
  const own = exposureOf(context)
  return own && `${publicOrigin(own)}${new URL(url).pathname}`
}

/** The route, unless the host name is somebody else's or the cluster has no such routes. */
export function exposureChildren(context: Context, meta: ChildMeta, target: RouteTarget): KubeObject[] {
  const own = exposureOf(context)
  return own && !refusal(context, own) ? [route(meta, own, target)] : []
}

/** URLs that clients are told and that must be of the host name: what each is, and the URL. */
export type ClientUrls = Readonly<Record<string, string | undefined>>

/** Sets ExposureReady; absent without the field. */
export function checkExposure(context: Context, name: string, told: ClientUrls): void {
  const own = exposureOf(context)
  if (!own) return
  const failure =
    refusal(context, own) ??
    mismatch(own, told) ??
    missingSecret(context, own) ??
    routeFailure(context, own, name)
  const message = `Clients reach the server at ${publicOrigin(own)}`
  context.conditions.check('ExposureReady', failure, 'Exposed', message)
}

function refusal(context: Context, exposure: Exposure): SyncFailure | undefined {
  if (exposure.gateway && !context.settings.gatewayApi) {
    const message =
      'this installation makes no HTTPRoutes: install the Gateway API and set integrations.gatewayAPI, or use spec.exposure.ingress'
    return { reason: 'GatewayAPINotEnabled', message }
  }
  const holder = holderOf(context, exposure.hostname)
  if (!holder) return undefined
  const { kind, metadata } = holder
  const message = `${exposure.hostname} is the host name of ${kind} ${metadata.name}, which is older`
  return { reason: 'HostnameClaimed', message }
}

/** Another server of the namespace with this host name that comes before this one. */
function holderOf(context: Context, hostname: string): KubeObject | undefined {
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

function mismatch({ hostname }: Exposure, told: ClientUrls): SyncFailure | undefined {
  const wrong = Object.entries(told).filter(
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
  return { reason: pending, message: 'No Ingress controller has taken the Ingress yet' }
}

/** The Gateway's own words, for each of its verdicts. */
function gatewayFailure(child: KubeObject): SyncFailure | undefined {
  const verdicts = listOf(fieldsOf(child['status'])['parents'])
    .filter(isFields)
    .flatMap(({ conditions }) => listOf(conditions).filter(isFields))
    .filter(({ type }) => type === 'Accepted' || type === 'ResolvedRefs')
  if (verdicts.length === 0) return { reason: pending, message: 'No Gateway has taken the HTTPRoute yet' }
  const bad = verdicts.find(({ status }) => status !== 'True')
  if (!bad) return undefined
  const { reason, message } = bad
  return {
    reason: typeof reason === 'string' && reason !== '' ? reason : pending,
    message: typeof message === 'string' ? message : 'The Gateway does not accept the HTTPRoute',
  }
}
