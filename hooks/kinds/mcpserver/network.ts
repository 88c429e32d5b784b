/**
 * Builds the server pod's network policy. Only the proxy may connect to the pod, and the permission profile limits
 * outgoing connections.
 *
 * A NetworkPolicy supports ports and address ranges, but not host names or file system access. A condition lists the
 * parts of a profile that the policy cannot enforce.
 */
import { ownLabels, selectorLabels } from '../../children/labels.ts'
import type { SyncFailure } from '../../sync/conditions.ts'
import type { SyncContext } from '../../sync/context.ts'
import { parseEmbeddedJson } from '../../base/json-bounds.ts'
import { fieldsOf, isFields, type KubeObject, listOf } from '../../base/kube.ts'
import { serverNames } from '../../children/names.ts'
import { app } from './children.ts'
import { isAttached } from './stdio.ts'

type Context = SyncContext<'MCPServer'>

interface Outbound {
  /** Allowed ports. An undefined list allows all ports; an empty list allows none. */
  readonly ports: readonly number[] | undefined
  /** Profile rules that a NetworkPolicy cannot enforce. */
  readonly open: readonly string[]
}

const anywhere: Outbound = { ports: undefined, open: [] }
const nowhere: Outbound = { ports: [], open: [] }

/**
 * Returns the policy, and an error when the profile cannot be read. An unreadable profile allows no outgoing traffic.
 */
export function networkPolicy(context: Context): {
  readonly policy: KubeObject
  readonly failure: SyncFailure | undefined
} {
  const { name, namespace } = context
  const profile = outboundOf(context)
  const outbound = profile.outbound ?? nowhere
  if (context.parent.spec.permissionProfile) setCondition(context, outbound, profile.failure)
  const policy = {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: { name: serverNames(name).server, namespace, labels: ownLabels(app, name, 'server') },
    spec: {
      podSelector: { matchLabels: selectorLabels(app, name, 'server') },
      policyTypes: outbound.ports === undefined ? ['Ingress'] : ['Ingress', 'Egress'],
      // An attached server accepts no connections.
      ...(!isAttached(context) && {
        ingress: [{ from: [{ podSelector: { matchLabels: selectorLabels(app, name, 'proxy') } }] }],
      }),
      ...(outbound.ports &&
        outbound.ports.length > 0 && { egress: [{ ports: egressPorts(outbound.ports) }] }),
    },
  }
  return { policy, failure: profile.failure }
}

/** Adds the DNS ports, which connections by host name require. */
function egressPorts(ports: readonly number[]) {
  return [
    { protocol: 'UDP', port: 53 },
    { protocol: 'TCP', port: 53 },
    ...ports.map((port) => ({ protocol: 'TCP', port })),
  ]
}

function setCondition(context: Context, { open }: Outbound, failure: SyncFailure | undefined): void {
  if (failure) context.conditions.set('PermissionProfileApplied', 'False', failure.reason, failure.message)
  else if (open.length > 0) {
    const message = `A NetworkPolicy cannot enforce: ${open.join(', ')}`
    context.conditions.set('PermissionProfileApplied', 'False', 'PartlyEnforced', message)
  } else
    context.conditions.set(
      'PermissionProfileApplied',
      'True',
      'PermissionProfileApplied',
      'The profile is enforced',
    )
}

function outboundOf(context: Context): {
  readonly outbound?: Outbound
  readonly failure: SyncFailure | undefined
} {
  const { permissionProfile } = context.parent.spec
  if (!permissionProfile) return { outbound: anywhere, failure: undefined }
  if (permissionProfile.type === 'builtin') {
    return { outbound: permissionProfile.name === 'none' ? nowhere : anywhere, failure: undefined }
  }
  const { name, key = '' } = permissionProfile
  const text = fieldsOf(context.configMap(name)?.['data'])[key]
  const profile = typeof text === 'string' ? parseEmbeddedJson(text) : undefined
  if (isFields(profile)) return { outbound: fromProfile(profile), failure: undefined }
  const message =
    typeof text === 'string'
      ? `ConfigMap ${name}, key ${key} is not a JSON object`
      : `ConfigMap ${name}, key ${key} does not exist`
  return { failure: { reason: 'PermissionProfileInvalid', message } }
}

function fromProfile(profile: Readonly<Record<string, unknown>>): Outbound {
  const outbound = fieldsOf(fieldsOf(profile['network'])['outbound'])
  const hosts = listOf(outbound['allowHost'])
  const ports = listOf(outbound['allowPort']).filter((port): port is number => Number.isInteger(port))
  const paths = [...listOf(profile['read']), ...listOf(profile['write'])]
  const open = [...(hosts.length > 0 ? ['allowHost'] : []), ...(paths.length > 0 ? ['read and write'] : [])]
  if (outbound['insecureAllowAll'] === true) return { ports: undefined, open }
  if (ports.length > 0) return { ports: [...new Set(ports)].sort((a, b) => a - b), open }
  return hosts.length > 0 ? { ports: undefined, open } : { ports: [], open }
}
