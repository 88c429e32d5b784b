/** Builds the desired children of an MCPRemoteProxy, or returns the errors that prevent it. */
import { addressViolation, endpointPolicy } from '../../../schemas/index.ts'
import { mostReplicas } from '../../children/serving/availability.ts'
import { sizeFailure } from '../../children/size.ts'
import type { SyncFailure } from '../../sync/conditions.ts'
import type { SyncContext } from '../../sync/context.ts'
import type { KubeObject } from '../../base/kube.ts'
import { remoteProxyNames, serviceUrl } from '../../children/names.ts'
import {
  clientCertificateFailure,
  clientCertificatePaths,
  mountClientCertificate,
} from '../../runtime-config/client-certificate.ts'
import { PodNeeds } from '../../runtime-config/needs.ts'
import { checkReplicaSessions } from '../../runtime-config/session-storage.ts'
import { externalUrl } from '../common/exposure.ts'
import { addTlsFiles, checkTls, servedUrl } from '../common/serving-tls.ts'
import { proxyChildren, type ProxyWorkload } from '../common/proxy/children.ts'
import { type BuiltProxyConfig, proxyConfig } from '../common/proxy/config.ts'
import { proxyReferences } from '../common/proxy/references.ts'
import { resolveReferences } from '../../references/reference.ts'
import { checkPodTemplate, templateFailure } from '../common/pod-template.ts'
import { specFailure } from '../../references/resolve.ts'

type Context = SyncContext<'MCPRemoteProxy'>

export const app = 'mcpremoteproxy'

export interface BuiltRemoteProxy {
  readonly children: readonly KubeObject[] | undefined
  readonly failures: readonly SyncFailure[]
  readonly hashes: BuiltProxyConfig['hashes']
}

/** Returns the proxy's address with the path of its MCP endpoint. */
export function addressOf(context: Context): string {
  const { name, namespace, settings, parent } = context
  const base = serviceUrl(
    remoteProxyNames(name).proxy,
    namespace,
    settings.clusterDomain,
    parent.spec.proxyPort,
  )
  return servedUrl(context, base) + (parent.spec.transport === 'sse' ? '/sse' : '/mcp')
}

/** Returns the address for clients outside the cluster, or undefined when the proxy is not exposed. */
export function externalAddressOf(context: Context): string | undefined {
  return externalUrl(context, addressOf(context))
}

/** Resolves the references and builds the configuration, the pod and the children. */
export function build(context: Context): BuiltRemoteProxy {
  const { conditions, spec } = context
  const invalid = specFailure(context.violations, reasonOf(context))
  if (invalid) {
    checkConfiguration(context, invalid)
    checkPodTemplate(conditions, templateFailure(context.violations))
    return { children: undefined, failures: [invalid], hashes: {} }
  }
  const needs = new PodNeeds()
  const target = {
    context,
    needs,
    resource: externalAddressOf(context) ?? addressOf(context),
    workload: proxyWorkload(context),
  }
  const references = resolveReferences(proxyReferences, target)

  const certificate = spec.clientCertificateSecretRef
  if (certificate) mountClientCertificate(needs, context.name, certificate.name)
  const config = proxyConfig(target, references, {
    targetUri: spec.remoteUrl,
    transport: spec.transport,
    proxyMode: spec.transport,
    targetAddresses: endpointPolicy(spec.allowPrivateEndpoint),
    ...(certificate && { targetTls: clientCertificatePaths(context.name) }),
  })
  const headers = checkHeaders(context, needs)
  const noCertificate = certificate && clientCertificateFailure(context, certificate)
  const tls = checkTls(context, addressOf(context))
  checkReplicaSessions(conditions, context.settings, spec.sessionStorage?.provider, mostReplicas(spec))
  checkConfiguration(context, headers ?? noCertificate ?? configurationFailure(config.failures))

  addTlsFiles(context, needs)
  const proxy =
    config.file &&
    proxyChildren(config, needs, {
      ...proxyWorkload(context),
      serviceAccount: spec.serviceAccount,
      resources: spec.resources,
      podTemplateSpec: spec.podTemplateSpec,
    })
  checkPodTemplate(conditions, proxy?.failure)

  const { hashes } = config
  const size = proxy?.children && sizeFailure(proxy.children)
  const failures = [headers, noCertificate, tls, ...config.failures, proxy?.failure, size].filter(
    (failure) => failure !== undefined,
  )
  return { children: failures.length > 0 ? undefined : proxy?.children, failures, hashes }
}

/** Returns the proxy's workload without the parts that only the full build adds. */
export function proxyWorkload(context: Context): ProxyWorkload {
  return { context, app, names: remoteProxyNames(context.name), replicas: context.spec.replicas }
}

/** Returns the reason for an invalid manifest. */
function reasonOf({ violations, stored }: Context): string {
  const spec = stored['spec'] as { remoteUrl?: unknown; allowPrivateEndpoint?: unknown } | undefined
  const url = spec?.remoteUrl
  if (typeof url === 'string' && addressViolation(url, endpointPolicy(spec?.allowPrivateEndpoint === true)))
    return 'RemoteURLInvalid'
  if (violations.some(({ path }) => path.startsWith('spec.authzConfig'))) return 'AuthzPolicySyntaxInvalid'
  return 'ConfigurationInvalid'
}

const configurationReasons: ReadonlySet<string> = new Set([
  'AuthzConfigMapNotFound',
  'AuthzConfigMapInvalid',
  'ExternalAuthConfigNotFound',
])

function configurationFailure(failures: readonly SyncFailure[]): SyncFailure | undefined {
  return failures.find(({ reason }) => configurationReasons.has(reason))
}

function checkConfiguration({ conditions }: Context, failure: SyncFailure | undefined): void {
  conditions.check('ConfigurationValid', failure, 'ConfigurationValid', 'The configuration is valid')
  conditions.check(
    'AuthConfigured',
    failure && { reason: 'AuthInvalid', message: failure.message },
    'AuthValid',
    'Authentication configuration is valid',
  )
}

function checkHeaders(context: Context, needs: PodNeeds): SyncFailure | undefined {
  const refs = (context.parent.spec.headerForward?.addHeadersFromSecret ?? []).map(
    ({ valueSecretRef }) => valueSecretRef,
  )
  if (refs.length === 0) return undefined
  needs.revision('headerForward', context.secretRevision(refs))
  return context.missingSecretsFailure(refs, 'HeaderSecretNotFound')
}
