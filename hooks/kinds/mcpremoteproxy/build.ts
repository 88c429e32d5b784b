/**
 * From a judged MCPRemoteProxy to its desired children, or to the faults that stand in the way.
 */
import { ownLabels, selectorLabels } from '../../children/labels.ts'
import { addressFault } from '../../addresses.ts'
import { sizeFault } from '../../children/size.ts'
import type { Fault } from '../../conditions.ts'
import type { SyncContext } from '../../context.ts'
import type { KubeObject } from '../../kube.ts'
import { remoteProxyNames, serviceUrl } from '../../names.ts'
import { PodNeeds } from '../../needs.ts'
import { checkReplicaSessions } from '../../parts/session-storage.ts'
import { proxyChildren } from '../../proxy/children.ts'
import { type ProxyConfig, front } from '../../proxy/front.ts'
import { specFault } from '../../references.ts'

type Context = SyncContext<'MCPRemoteProxy'>

export const app = 'mcpremoteproxy'

export interface Built {
  readonly children: readonly KubeObject[] | undefined
  readonly faults: readonly Fault[]
  readonly hashes: ProxyConfig['hashes']
}

/** Address of the proxy with the path of its MCP endpoint. */
export function addressOf({ name, namespace, settings, parent }: Context): string {
  const base = serviceUrl(
    remoteProxyNames(name).proxy,
    namespace,
    settings.clusterDomain,
    parent.spec.proxyPort,
  )
  return base + (parent.spec.transport === 'sse' ? '/sse' : '/mcp')
}

export function build(context: Context): Built {
  const { conditions, parent } = context
  const { spec } = parent
  const invalid = specFault(context.problems, reasonOf(context))
  if (invalid) {
    judgeConfiguration(context, invalid)
    return { children: undefined, faults: [invalid], hashes: {} }
  }
  const needs = new PodNeeds()
  const target = {
    targetUri: spec.remoteUrl,
    transport: spec.transport,
    proxyMode: spec.transport,
    targetAddresses: spec.allowPrivateEndpoint ? ('private' as const) : ('public' as const),
  }
  const proxy = front(context, target, addressOf(context), needs)
  checkReplicaSessions(conditions, context.settings, spec.sessionStorage?.provider, spec.replicas)
  const headers = judgeHeaders(context, needs)
  const built = proxy.file && proxyChildren(proxy, needs, proxyOptions(context))
  const template = built?.fault
  conditions.check('PodTemplateValid', template, 'ValidPodTemplateSpec', 'The pod template is valid')
  judgeConfiguration(context, headers ?? configurationFault(proxy.faults))
  const size = built?.children && sizeFault(built.children)
  const faults = [headers, ...proxy.faults, template, size].filter((fault) => fault !== undefined)
  if (faults.length > 0 || !built?.children) return { children: undefined, faults, hashes: proxy.hashes }
  return { children: built.children, faults: [], hashes: proxy.hashes }
}

/** Which part of the manifest is at fault, as a reason. */
function reasonOf({ problems, stored }: Context): string {
  const spec = stored['spec'] as { remoteUrl?: unknown; allowPrivateEndpoint?: unknown } | undefined
  const url = spec?.remoteUrl
  if (typeof url === 'string' && addressFault(url, spec?.allowPrivateEndpoint === true))
    return 'RemoteURLInvalid'
  if (problems.some(({ path }) => path.startsWith('spec.authzConfig'))) return 'AuthzPolicySyntaxInvalid'
  return 'ConfigurationInvalid'
}

const configurationReasons: ReadonlySet<string> = new Set([
  'AuthzConfigMapNotFound',
  'AuthzConfigMapInvalid',
  'ExternalAuthConfigNotFound',
])

function configurationFault(faults: readonly Fault[]): Fault | undefined {
  return faults.find(({ reason }) => configurationReasons.has(reason))
}

function judgeConfiguration({ conditions }: Context, fault: Fault | undefined): void {
  conditions.check('ConfigurationValid', fault, 'ConfigurationValid', 'The configuration is valid')
  conditions.check(
    'AuthConfigured',
    fault && { reason: 'AuthInvalid', message: fault.message },
    'AuthValid',
    'Authentication configuration is valid',
  )
}

function judgeHeaders(context: Context, needs: PodNeeds): Fault | undefined {
  const refs = (context.parent.spec.headerForward?.addHeadersFromSecret ?? []).map(
    ({ valueSecretRef }) => valueSecretRef,
  )
  if (refs.length === 0) return undefined
  needs.revision('headerForward', context.secretRevision(refs))
  const missing = context.missingSecrets(refs)
  if (missing.length === 0) return undefined
  return { reason: 'HeaderSecretNotFound', message: `Not found: ${missing.join('; ')}` }
}

function proxyOptions(context: Context) {
  const { name, namespace, parent, settings } = context
  const { spec } = parent
  const names = remoteProxyNames(name)
  return {
    settings,
    namespace,
    owner: name,
    name: names.proxy,
    configName: names.proxyConfig,
    labels: ownLabels(app, name),
    selector: selectorLabels(app, name),
    port: spec.proxyPort,
    sessionAffinity: spec.sessionAffinity,
    replicas: spec.replicas,
    observed: context.child('Deployment', names.proxy),
    serviceAccount: spec.serviceAccount,
    resources: spec.resources,
    deploymentOverrides: spec.resourceOverrides?.proxyDeployment,
    serviceOverrides: spec.resourceOverrides?.proxyService,
    podTemplateSpec: spec.podTemplateSpec,
    annotations: {},
  }
}
