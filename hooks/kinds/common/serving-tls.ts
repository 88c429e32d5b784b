/**
 * `spec.tls`: the certificate that a server presents on its own port. The pods mount the Secret and reload it, so a new
 * certificate does not change any child. Turning TLS on or off restarts the pods.
 */
import { isAuthority, pairViolations, serverName } from '../../../schemas/certificate/index.ts'
import { type Exposure, formatViolations, type SecretRef, type ServingTLS } from '../../../schemas/index.ts'
import { type ContainerSpec, httpsProbe } from '../../children/pod.ts'
import { fieldsOf, filledTextOf, type StringMap } from '../../base/kube.ts'
import { type GroupMember, isRemote } from '../../references/members.ts'
import { caBundleFailure, caKey } from '../../references/resolve.ts'
import type { PodNeeds } from '../../runtime-config/needs.ts'
import type { SyncFailure } from '../../sync/conditions.ts'
import type { AnyContext } from '../../sync/context.ts'

type Context = AnyContext & { readonly spec: { readonly tls?: ServingTLS | undefined } }

const directory = '/etc/gatehouse/tls'
const authorityDirectory = '/etc/gatehouse/tls-client-ca'
const certificate = 'tls.crt'
const privateKey = 'tls.key'
const authority = 'ca.crt'

/** Returns the name of the Secret for `customize`. `spec` may be invalid. */
export function tlsSecretName(spec: unknown): string | undefined {
  return filledTextOf(fieldsOf(fieldsOf(spec)['tls'])['secretName'])
}

/** Returns the name of the ConfigMap that contains the clients' authorities, for `customize`. `spec` may be invalid. */
export function clientAuthorityName(spec: unknown): string | undefined {
  const bundle = fieldsOf(fieldsOf(fieldsOf(spec)['tls'])['clientCABundleRef'])
  return filledTextOf(fieldsOf(bundle['configMapRef'])['name'])
}

/** True if the server asks clients for a certificate. */
export function asksForCertificates(context: Context): boolean {
  return tlsOf(context)?.clientCABundleRef !== undefined
}

/**
 * Returns the field if it is in effect. `gatehouse dev` ignores the field, because no certificate covers its loopback
 * addresses.
 */
function tlsOf({ settings, spec }: Context): ServingTLS | undefined {
  return settings.allowLoopback ? undefined : spec.tls
}

/** Returns the URL of the server's Service with the scheme that the server uses. */
export function servedUrl(context: Context, url: string): string {
  return tlsOf(context) ? url.replace(/^http:/, 'https:') : url
}

/**
 * Returns the address to show in the status. While an error keeps the previous children running, the children still use
 * the previous scheme.
 */
export function statusUrl({ stored }: AnyContext, url: string, children: unknown): string {
  const before = filledTextOf(fieldsOf(stored['status'])['url'])
  const changes = before !== undefined && before.startsWith('https:') !== url.startsWith('https:')
  return changes && children === undefined ? before : url
}

/**
 * Sets TLSReady, or leaves the condition absent when `spec.tls` is not set. `url` is the address inside the cluster.
 */
export function checkTls(context: Context, url: string): SyncFailure | undefined {
  const tls = tlsOf(context)
  if (!tls) return undefined
  const failure = tlsFailure(context, tls) ?? authorityFailure(context, tls)
  const served = `Serving the certificate from Secret ${tls.secretName}`
  const warnings = failure ? [] : trustNotes(context, tls, new URL(url).hostname)
  context.conditions.check('TLSReady', failure, 'CertificateServed', [served, ...warnings].join('; '))
  return failure
}

function tlsFailure(context: Context, { secretName: name }: ServingTLS): SyncFailure | undefined {
  const missing = context.missingSecrets([certificate, privateKey].map((key) => ({ name, key })))
  if (missing.length > 0)
    return {
      reason: 'TLSSecretNotFound',
      message: `spec.tls.secretName: not found: ${missing.join('; ')}. Create it with kubectl create secret tls or cert-manager. The running pods stay unchanged until then`,
    }
  const pair = {
    cert: context.secretValue({ name, key: certificate }),
    key: context.secretValue({ name, key: privateKey }),
  }
  const violations = pairViolations(pair, { cert: certificate, key: privateKey })
  if (violations.length === 0) return undefined
  const why = formatViolations(violations).replaceAll('\n', '; ')
  return {
    reason: 'TLSSecretInvalid',
    message: `spec.tls.secretName: Secret ${name}: ${why}. The running pods stay unchanged until you correct it`,
  }
}

function authorityFailure(
  context: Context,
  { clientCABundleRef: source }: ServingTLS,
): SyncFailure | undefined {
  if (!source) return undefined
  const stays = 'The running pods stay unchanged until you correct it'
  const absent = caBundleFailure(context, source)
  if (absent) {
    const message = `spec.tls.clientCABundleRef: ${absent.message}. ${stays}`
    return { reason: 'TLSClientCANotFound', message }
  }
  const { name, key } = source.configMapRef
  const data = fieldsOf(context.configMap(name)?.['data'])
  if (isAuthority(filledTextOf(data[caKey(key)]) ?? '')) return undefined
  const message = `spec.tls.clientCABundleRef: ConfigMap ${name} contains no CA certificate. ${stays}`
  return { reason: 'TLSClientCAInvalid', message }
}

/** Returns the reasons why in-cluster clients will not trust the certificate. */
function trustNotes(context: Context, { secretName: name }: ServingTLS, host: string): readonly string[] {
  return [
    ...(serverName(context.secretValue({ name, key: certificate }), host)
      ? []
      : [`it does not cover ${host}: virtual servers and other clients in the cluster reject it`]),
    ...(context.secretValue({ name, key: authority }) === ''
      ? [`the Secret has no ${authority}: virtual servers of the group cannot verify this server and skip it`]
      : []),
  ]
}

/**
 * Mounts the certificate and the key. The pods reload the files, so the Secret's revision does not affect the template.
 */
export function addTlsFiles(context: Context, needs: PodNeeds): void {
  const tls = tlsOf(context)
  if (!tls) return
  const items = [certificate, privateKey].map((key) => ({ key, path: key }))
  needs.secretFiles('serving-tls', directory, tls.secretName, items)
  const { clientCABundleRef: source } = tls
  if (source) needs.configFiles('serving-client-ca', authorityDirectory, source.configMapRef.name)
}

/** Changes that TLS requires in the children. */
export interface Serving {
  readonly secure: boolean
  /** Configures the main container. */
  readonly container: (container: ContainerSpec) => ContainerSpec
  /** Pod annotations for Prometheus, read by the PodMonitor in manifests/observability. */
  readonly annotations: StringMap
}

/** Returns no changes when `spec.tls` is absent. */
export function serving(context: Context): Serving {
  const tls = tlsOf(context)
  if (!tls) return { secure: false, container: (container) => container, annotations: {} }
  return {
    secure: true,
    container: (container) => withTls(container, tls),
    annotations: { 'prometheus.io/scheme': 'https' },
  }
}

function withTls(container: ContainerSpec, { clientCABundleRef: source }: ServingTLS): ContainerSpec {
  const { args = [], startupProbe = {}, livenessProbe = {}, readinessProbe = {} } = container
  return {
    ...container,
    args: withFlags(args, [
      `--tls-cert-file=${directory}/${certificate}`,
      `--tls-key-file=${directory}/${privateKey}`,
      ...(source ? [`--tls-client-ca-file=${authorityDirectory}/${caKey(source.configMapRef.key)}`] : []),
    ]),
    startupProbe: httpsProbe(startupProbe),
    livenessProbe: httpsProbe(livenessProbe),
    readinessProbe: httpsProbe(readinessProbe),
  }
}

/** Inserts flags before `--`, after which only operands may follow. */
function withFlags(args: readonly string[], flags: readonly string[]): string[] {
  const end = args.indexOf('--')
  return end < 0 ? [...args, ...flags] : [...args.slice(0, end), ...flags, ...args.slice(end)]
}

/** Warns that a Gateway needs extra configuration to reach an HTTPS Service. `service` is the name of the Service. */
export function tlsWarnings(
  { tls, exposure }: { readonly tls?: ServingTLS | undefined; readonly exposure?: Exposure | undefined },
  service: string,
): readonly string[] {
  if (!tls || !exposure?.gateway) return []
  return [`tls behind a Gateway requires a BackendTLSPolicy for Service ${service}`]
}

/** Returns the Secret key that contains the authority for a group member that serves TLS. */
export function memberAuthority({ kind, object, url }: GroupMember): SecretRef | undefined {
  const name = isRemote(kind) ? undefined : tlsSecretName(object['spec'])
  return name !== undefined && url?.startsWith('https:') ? { name, key: authority } : undefined
}
