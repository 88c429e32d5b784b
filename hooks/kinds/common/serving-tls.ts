/**
 * `spec.tls`: the certificate that a server shows on its own port. The pods mount the Secret and follow it, so a new
 * certificate changes nothing here; only switching TLS on or off rolls them.
 */
import { pairViolations, serverName } from '../../../schemas/certificate/index.ts'
import { type Exposure, formatViolations, type SecretRef, type ServingTLS } from '../../../schemas/index.ts'
import { type ContainerSpec, httpsProbe } from '../../children/pod.ts'
import { fieldsOf, filledTextOf, type StringMap } from '../../base/kube.ts'
import type { GroupMember } from '../../references/members.ts'
import type { PodNeeds } from '../../runtime-config/needs.ts'
import type { SyncFailure } from '../../sync/conditions.ts'
import type { AnyContext } from '../../sync/context.ts'

type Context = AnyContext & { readonly spec: { readonly tls?: ServingTLS | undefined } }

const directory = '/etc/gatehouse/tls'
const certificate = 'tls.crt'
const privateKey = 'tls.key'
const authority = 'ca.crt'

/** Name of the Secret, for `customize`: of a spec that nobody has checked yet. */
export function tlsSecretName(spec: unknown): string | undefined {
  return filledTextOf(fieldsOf(fieldsOf(spec)['tls'])['secretName'])
}

/** The field as it counts. `gatehouse dev` serves on the loopback interface, by addresses that no certificate names. */
function tlsOf({ settings, spec }: Context): ServingTLS | undefined {
  return settings.allowLoopback ? undefined : spec.tls
}

/** The URL of the server's Service, by https when it serves that. */
export function servedUrl(context: Context, url: string): string {
  return tlsOf(context) ? url.replace(/^http:/, 'https:') : url
}

/**
 * The address to tell. As long as something broken keeps what runs, that serves as it did: its scheme is not told before it
 * is there.
 */
export function toldUrl({ stored }: AnyContext, url: string, children: unknown): string {
  const before = filledTextOf(fieldsOf(stored['status'])['url'])
  const changes = before !== undefined && before.startsWith('https:') !== url.startsWith('https:')
  return changes && children === undefined ? before : url
}

/** Sets TLSReady, absent without the field. `url`: where others in the cluster reach the server. */
export function checkTls(context: Context, url: string): SyncFailure | undefined {
  const tls = tlsOf(context)
  if (!tls) return undefined
  const failure = tlsFailure(context, tls)
  const served = `The certificate of Secret ${tls.secretName} is served`
  const notes = failure ? [] : notesOf(context, tls, new URL(url).hostname)
  context.conditions.check('TLSReady', failure, 'CertificateServed', [served, ...notes].join('; '))
  return failure
}

function tlsFailure(context: Context, { secretName: name }: ServingTLS): SyncFailure | undefined {
  const missing = context.missingSecrets([certificate, privateKey].map((key) => ({ name, key })))
  if (missing.length > 0)
    return {
      reason: 'TLSSecretNotFound',
      message: `spec.tls.secretName: not found: ${missing.join('; ')}. Create it (kubectl create secret tls, or a Certificate of cert-manager); what runs stays as it is until then`,
    }
  const pair = { cert: valueOf(context, name, certificate), key: valueOf(context, name, privateKey) }
  const violations = pairViolations(pair, { cert: certificate, key: privateKey })
  if (violations.length === 0) return undefined
  const why = formatViolations(violations).replaceAll('\n', '; ')
  return {
    reason: 'TLSSecretInvalid',
    message: `spec.tls.secretName: Secret ${name}: ${why}. What runs stays as it is until it is corrected`,
  }
}

/** What keeps others from trusting what is served. */
function notesOf(context: Context, { secretName }: ServingTLS, host: string): readonly string[] {
  return [
    ...(serverName(valueOf(context, secretName, certificate), host)
      ? []
      : [`it does not name ${host}: virtual servers and others in the cluster refuse it`]),
    ...(valueOf(context, secretName, authority) === ''
      ? [
          `the Secret has no ${authority}: virtual servers of the group cannot know whom to trust, and leave this one out`,
        ]
      : []),
  ]
}

function valueOf(context: Context, name: string, key: string): string {
  const secret = context.secret(name)
  const plain = fieldsOf(secret?.['stringData'])[key]
  if (typeof plain === 'string') return plain
  const data = fieldsOf(secret?.['data'])[key]
  return typeof data === 'string' ? Buffer.from(data, 'base64').toString() : ''
}

/** Mounts certificate and key. Their revision is none of the pods' concern: they follow the files. */
export function addTlsFiles(context: Context, needs: PodNeeds): void {
  const tls = tlsOf(context)
  if (!tls) return
  const items = [certificate, privateKey].map((key) => ({ key, path: key }))
  needs.secretFiles('serving-tls', directory, tls.secretName, items)
}

/** What serving TLS changes of the children. */
export interface Serving {
  readonly secure: boolean
  /** The container that serves. */
  readonly container: (container: ContainerSpec) => ContainerSpec
  /** Of the pods, for Prometheus: the PodMonitor of manifests/observability reads it. */
  readonly annotations: StringMap
}

/** Without the field nothing. */
export function serving(context: Context): Serving {
  if (!tlsOf(context)) return { secure: false, container: (container) => container, annotations: {} }
  return { secure: true, container: withTls, annotations: { 'prometheus.io/scheme': 'https' } }
}

function withTls(container: ContainerSpec): ContainerSpec {
  const { args = [], startupProbe = {}, livenessProbe = {}, readinessProbe = {} } = container
  return {
    ...container,
    args: withFlags(args, [
      `--tls-cert-file=${directory}/${certificate}`,
      `--tls-key-file=${directory}/${privateKey}`,
    ]),
    startupProbe: httpsProbe(startupProbe),
    livenessProbe: httpsProbe(livenessProbe),
    readinessProbe: httpsProbe(readinessProbe),
  }
}

/** Adds flags before `--`, because only operands may follow it. */
function withFlags(args: readonly string[], flags: readonly string[]): string[] {
  const end = args.indexOf('--')
  return end < 0 ? [...args, ...flags] : [...args.slice(0, end), ...flags, ...args.slice(end)]
}

/** What a Gateway does not find out by itself. `service`: name of the Service. */
export function tlsWarnings(
  { tls, exposure }: { readonly tls?: ServingTLS | undefined; readonly exposure?: Exposure | undefined },
  service: string,
): readonly string[] {
  if (!tls || !exposure?.gateway) return []
  return [`tls behind a Gateway needs a BackendTLSPolicy for Service ${service}`]
}

/** Where a virtual server finds the authority of a member that serves TLS: a Secret, and its key. */
export function memberAuthority({ kind, object, url }: GroupMember): SecretRef | undefined {
  const name = kind === 'MCPServerEntry' ? undefined : tlsSecretName(object['spec'])
  return name !== undefined && url?.startsWith('https:') ? { name, key: authority } : undefined
}
