/**
 * Resolves the group's members to the running server's backends, for both modes of outgoingAuth.
 *
 * A member whose authentication cannot be resolved is excluded from the configuration but stays in the status. An
 * excluded member must never use the default strategy.
 */
import {
  type AddressPolicy,
  envName,
  formatViolations,
  type input,
  byText,
} from '../../../../schemas/index.ts'
import { policyFor } from '../../../references/addresses.ts'
import type { SyncFailure } from '../../../sync/conditions.ts'
import type { SyncContext } from '../../../sync/context.ts'
import type { Strategy } from '../../../externalauth/index.ts'
import { caBundleFailure, caKey, hasCaBundle } from '../../../references/resolve.ts'
import { fieldsOf, filledTextOf, type StringMap } from '../../../base/kube.ts'
import { clientCertificatePaths } from '../../../runtime-config/client-certificate.ts'
import { groupMembers, type GroupMember, isRemote, memberKinds } from '../../../references/members.ts'
import { memberAuthority } from '../../common/serving-tls.ts'
import { openApiPart } from './openapi.ts'
import type { OutgoingConfig } from './outgoing.ts'

export const caBundleDirectory = '/etc/gatehouse/ca-bundles'

/** Returns the path of the PEM file that contains a backend's trust anchors. */
function caBundlePath(backend: string, key: string): string {
  return `${caBundleDirectory}/${backend}/${key}`
}

export interface ResolvedBackend {
  readonly name: string
  /** The group's member; undefined for a static backend that the resource itself declares. */
  readonly member: GroupMember | undefined
  /** Configuration of the backend; undefined while the backend is unusable. */
  readonly backend: input.RuntimeBackend | undefined
  /** The backend's own strategy; undefined when the default strategy applies. */
  readonly strategy: Strategy | undefined
  readonly authConfigRef: string | undefined
  /** True when the resource itself selects this backend's configuration. */
  readonly explicit: boolean
  readonly failure: SyncFailure | undefined
}

type Context = SyncContext<'VirtualMCPServer'>

/** Returns all backends, sorted by name. */
export function resolveBackends(context: Context, resolver: OutgoingConfig): readonly ResolvedBackend[] {
  const group = context.parent.spec.groupRef.name
  const byName = new Map<string, ResolvedBackend>()
  const { members, duplicates } = groupMembers(context, group)
  reportDuplicates(context, duplicates)
  for (const member of members) {
    if (!byName.has(member.name)) byName.set(member.name, resolveMember(context, member, resolver))
  }
  if (context.parent.spec.outgoingAuth?.source === 'inline') {
    for (const backend of context.parent.spec.config?.backends ?? []) {
      const metadata = { ...backend.metadata, group }
      const auth = resolver.strategyFor(backend.name, byName.get(backend.name)?.member?.authRef)
      byName.set(backend.name, {
        name: backend.name,
        member: undefined,
        backend: auth.failure ? undefined : { ...backend, metadata },
        ...auth,
      })
    }
  }
  const sorted = [...byName.values()].sort((a, b) => byText(a.name, b.name))
  return withoutSharedVariables(sorted)
}

/**
 * Reports members with duplicate names, which form one backend. Leaves the condition absent when no names are
 * duplicated.
 */
function reportDuplicates({ conditions }: Context, names: readonly string[]): void {
  if (names.length === 0) return
  conditions.set(
    'MemberNamesUnique',
    'False',
    'DuplicateMemberName',
    `More than one member of the group is called ${names.join(', ')}; only the first of ${memberKinds.join(', ')} is used`,
  )
}

/**
 * Excludes backends whose added headers would share an environment variable. `a-b` and `a.b` have the same variable
 * name, and neither backend may get the other's headers.
 */
function withoutSharedVariables(backends: readonly ResolvedBackend[]): readonly ResolvedBackend[] {
  const owners = new Map<string, number>()
  for (const { name } of backends) owners.set(envName(name), (owners.get(envName(name)) ?? 0) + 1)
  return backends.map((resolved) => {
    const { name, member } = resolved
    const hasHeaders = fieldsOf(member?.object['spec'])['headerForward'] !== undefined
    if (!hasHeaders || owners.get(envName(name)) === 1) return resolved
    const message = `the name of another backend differs from ${name} only in punctuation; headerForward requires a distinct name`
    return { ...resolved, backend: undefined, failure: { reason: 'AmbiguousName', message } }
  })
}

function resolveMember(context: Context, member: GroupMember, resolver: OutgoingConfig): ResolvedBackend {
  const auth = resolver.strategyFor(member.name, member.authRef)
  const isRemoteMember = isRemote(member.kind)
  const caBundle = isRemoteMember ? caBundleOf(context, member) : undefined
  const failure = auth.failure ?? caBundle?.failure ?? specFailureOf(context, member)
  const authority = memberAuthority(member)
  const usable = member.url !== undefined && failure === undefined
  return {
    name: member.name,
    member,
    strategy: auth.strategy,
    authConfigRef: auth.authConfigRef,
    explicit: auth.explicit,
    failure,
    backend: usable
      ? {
          name: member.name,
          url: member.url ?? '',
          transport: member.transport,
          ...(isRemoteMember && { type: 'entry', addresses: addressesOf(context, member) }),
          ...(caBundle && { caBundlePath: caBundlePath(member.name, caBundle.key) }),
          ...(clientCertificateOf(member) !== undefined && clientCertificatePaths(member.name)),
          // Only backends of type entry can have their own trust anchors in the file.
          ...(authority && { type: 'entry', caBundlePath: caBundlePath(member.name, authority.key) }),
          ...(member.kind === 'MCPOpenAPIServer' && openApiPart(context, member.name)),
          metadata: metadataOf(member, context.parent.spec.groupRef.name, context.namespace),
        }
      : undefined,
  }
}

/**
 * Reports an invalid member whose spec is copied: an entry that adds headers, and a REST service. The spec is not read,
 * because the object may have been admitted under older rules.
 */
function specFailureOf(context: Context, { kind, name, object }: GroupMember): SyncFailure | undefined {
  if (!isRemote(kind)) return undefined
  const hasHeaders = fieldsOf(object['spec'])['headerForward'] !== undefined
  if (kind === 'MCPServerEntry' && !hasHeaders) return undefined
  const violations = context.violationsOf(object)
  if (violations.length === 0) return undefined
  const message = `${kind} ${name} is not valid: ${formatViolations(violations)}`
  return { reason: 'EntryNotValid', message: message.slice(0, 1024) }
}

/**
 * Returns the addresses that connections to a remote member may use. The host name may now resolve to a different
 * address than it did at admission.
 */
function addressesOf({ settings }: Context, { object, url }: GroupMember): AddressPolicy {
  const allowPrivateEndpoint = fieldsOf(object['spec'])['allowPrivateEndpoint'] === true
  return policyFor(url ?? '', { allowPrivateEndpoint, allowLoopback: settings.allowLoopback })
}

/**
 * Returns the Secret that contains a remote member's client certificate; undefined when it has no client certificate.
 */
export function clientCertificateOf({ kind, object }: GroupMember): string | undefined {
  if (!isRemote(kind)) return undefined
  return filledTextOf(fieldsOf(fieldsOf(object['spec'])['clientCertificateSecretRef'])['name'])
}

interface CaBundle {
  readonly configMap: string
  readonly key: string
  readonly failure: SyncFailure | undefined
}

/** Returns a remote member's trust anchors, or undefined when it has no trust anchors. */
export function caBundleOf(context: Context, member: GroupMember): CaBundle | undefined {
  const bundle = fieldsOf(member.object['spec'])['caBundleRef']
  const { name, key } = fieldsOf(fieldsOf(bundle)['configMapRef'])
  if (typeof name !== 'string' || name === '' || !hasCaBundle(member.object, bundle)) return undefined
  const source = { configMapRef: { name, key: typeof key === 'string' ? key : '' } }
  // The sync of the member checks the ConfigMap, which this request rarely contains because it is two references away.
  const failure = context.configMap(name) ? caBundleFailure(context, source) : undefined
  return { configMap: name, key: caKey(source.configMapRef.key), failure }
}

const workloadTypes = {
  MCPServer: 'mcp_server',
  MCPRemoteProxy: 'remote_proxy',
  MCPServerEntry: 'server_entry',
  MCPOpenAPIServer: 'openapi_server',
} as const

const maxAnnotations = 32
const maxAnnotation = 256

/**
 * Returns the member's annotations outside the Kubernetes and Gatehouse domains, plus fixed metadata. The phase is
 * excluded, because every phase change would rewrite the file.
 */
function metadataOf(member: GroupMember, group: string, namespace: string): StringMap {
  const annotations = Object.entries(member.object.metadata.annotations ?? {})
    .filter(([key, value]) => !isReserved(key) && value.length <= maxAnnotation)
    .sort(([a], [b]) => byText(a, b))
    .slice(0, maxAnnotations)
  return {
    ...Object.fromEntries(annotations),
    group,
    namespace,
    tool_type: 'mcp',
    workload_type: workloadTypes[member.kind],
    ...(member.kind !== 'MCPServer' && { remote_url: remoteUrlOf(member) }),
  }
}

function remoteUrlOf(member: GroupMember): string {
  const { remoteUrl, baseUrl } = fieldsOf(member.object['spec'])
  const url = member.kind === 'MCPOpenAPIServer' ? baseUrl : remoteUrl
  return typeof url === 'string' ? url : ''
}

function isReserved(key: string): boolean {
  const domain = key.includes('/') ? (key.split('/')[0] ?? '') : ''
  return /(^|\.)(kubernetes\.io|k8s\.io|gatehouse\.dev)$/.test(domain)
}
