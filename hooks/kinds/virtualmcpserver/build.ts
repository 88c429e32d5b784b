/**
 * Builds a virtual server's desired children, or returns the errors that prevent it.
 *
 * All checks run before the build stops, so one sync reports all errors.
 */
import { createHash } from 'node:crypto'
import { authServerFile } from '../../../schemas/index.ts'
import { sizeFailure } from '../../children/size.ts'
import type { SyncFailure } from '../../sync/conditions.ts'
import type { SyncContext } from '../../sync/context.ts'
import type { Strategy } from '../../externalauth/index.ts'
import type { KubeObject, StringMap } from '../../base/kube.ts'
import { serviceUrl, virtualServerNames } from '../../children/names.ts'
import { PodNeeds } from '../../runtime-config/needs.ts'
import { mergeFailure, templateFailure } from '../common/pod-template.ts'
import { specFailure } from '../../references/resolve.ts'
import { externalUrl } from '../common/exposure.ts'
import { checkTls, servedUrl } from '../common/serving-tls.ts'
import { toYaml } from '../../children/yaml.ts'
import { authServerFileOf, checkAuthServer, checkInvalidAuthServer } from './config/auth-server.ts'
import type { ResolvedBackend } from './config/backends.ts'
import { childrenOf, commonNeeds, podTemplate } from './children.ts'
import { configOf, restartHash } from './config/config.ts'
import { checkConsoleSecret, mcpPort } from './config/console.ts'
import { backendsWithNeeds } from './config/entries.ts'
import { type CheckedFiles, checkFiles, configFile, type Files } from './config/files.ts'
import { incomingAuth } from './config/incoming.ts'
import { virtualServerReferences } from './references.ts'
import { type ResolvedReferences, resolveReferences } from '../../references/reference.ts'
import {
  checkBackendNames,
  unknownBackendsOf,
  unknownWebhookBackends,
} from '../../references/backend-names.ts'
import { mostReplicas } from '../../children/serving/availability.ts'
import { checkReplicaSessions, checkSessionPassword } from '../../runtime-config/session-storage.ts'

type Context = SyncContext<'VirtualMCPServer'>

export interface BuiltVirtualServer {
  /** Undefined when a required part is broken; the running children then stay unchanged. */
  readonly children: readonly KubeObject[] | undefined
  readonly backends: readonly ResolvedBackend[]
  /** Strategy for backends without their own strategy. */
  readonly defaultStrategy?: Strategy | undefined
  /** SHA-256 of config.yaml in hex; undefined without a file. */
  readonly checksum: string | undefined
  readonly failures: readonly SyncFailure[]
  readonly hashes: Readonly<Record<string, string | undefined>>
}

/** Returns the virtual server's address with the path of its MCP endpoint. */
export function addressOf(context: Context): string {
  const { name, namespace, settings } = context
  const base = serviceUrl(virtualServerNames(name).server, namespace, settings.clusterDomain, mcpPort)
  return `${servedUrl(context, base)}/mcp`
}

/** Returns the address for clients outside the cluster, or undefined when the server is not exposed. */
export function externalAddressOf(context: Context): string | undefined {
  return externalUrl(context, addressOf(context))
}

/** Resolves the references and builds the configuration, the pod and the children. */
export function build(context: Context): BuiltVirtualServer {
  const invalid = specFailure(context.violations, 'ValidationFailed')
  context.conditions.check('Valid', invalid, 'ValidationSucceeded', 'Spec validation passed')
  if (invalid) {
    checkInvalidAuthServer(context)
    checkTemplate(context, templateFailure(context.violations))
    return { children: undefined, backends: [], checksum: undefined, failures: [invalid], hashes: {} }
  }
  const needs = new PodNeeds()
  commonNeeds(context, needs)
  const resource = externalAddressOf(context) ?? addressOf(context)
  const references = resolveReferences(virtualServerReferences, { context, needs, resource })

  const { files, backends, failures } = configure(context, references, needs)
  const { hashes } = references
  const stopped = { children: undefined, backends, checksum: undefined, hashes }
  if (!files) {
    // The pod is incomplete without the file, but the user's template can still be checked.
    const { violations } = podTemplate(context, needs, '')
    checkTemplate(context, violations && mergeFailure(violations))
    return { ...stopped, failures }
  }

  const { config, authServer } = files
  const pod = podTemplate(context, needs, restartHash(config, authServer, needs.revisionHash))
  const template = pod.violations && mergeFailure(pod.violations)
  checkTemplate(context, template)
  if (!pod.template) return { ...stopped, failures: template ? [template] : [] }

  const texts = textsOf(files)
  const checksum = createHash('sha256')
    .update(texts[configFile] ?? '')
    .digest('hex')
  const children = childrenOf(context, pod.template, texts, checksum)
  const size = sizeFailure(children)
  if (size) return { ...stopped, failures: [size] }
  const { defaultStrategy } = references.values.outgoing ?? {}
  return { children, backends, defaultStrategy, checksum, failures: [], hashes }
}

/** Sets the condition that reports the pod template. */
function checkTemplate({ conditions }: Context, failure: SyncFailure | undefined): void {
  conditions.check('PodTemplateSpecValid', failure, 'PodTemplateSpecValid', 'The pod template is valid')
}

/** Builds the files and the backends. Runs all checks before it stops, so one sync reports all failures. */
function configure(
  context: Context,
  { values, failures, hashes }: ResolvedReferences<typeof virtualServerReferences>,
  needs: PodNeeds,
): CheckedFiles {
  const auth = incomingAuth(context, { values, failures, hashes })
  const server = checkAuthServer(context, auth)
  const checks = [
    checkSessionSecret(context, needs),
    checkConsoleSecret(context, needs),
    checkTls(context, addressOf(context)),
  ]
  checkSessions(context)
  // The running server reloads its webhooks and their files.
  const { webhookConfigHash: _, ...revisions } = hashes
  for (const [field, hash] of Object.entries(revisions)) needs.revision(field, hash)
  const backends = backendsWithNeeds(context, needs, values)
  const { group, compositeTools, optimizer, ...rest } = failures
  // If the group does not exist, its members are unknown.
  if (group?.reason !== 'GroupRefNotFound') {
    const names = backends.map(({ name }) => name)
    checkNames(context, names)
  }
  const found = [group, compositeTools, optimizer, server, ...Object.values(rest), ...checks]
  const broken = found.filter((failure) => failure !== undefined)
  if (broken.length > 0 || !auth) return { files: undefined, backends, failures: broken }
  const authServer = authServerFileOf(context, auth, needs)
  const address = addressOf(context)
  const publicAddress = externalAddressOf(context) ?? auth.oidc?.resource ?? address
  const config = configOf(context, { values, auth, backends, address, publicAddress }, needs)
  return checkFiles(context, { config, authServer }, backends)
}

function textsOf({ config, authServer }: Files): StringMap {
  return {
    [configFile]: toYaml(config),
    ...(authServer && { [authServerFile]: toYaml(authServer) }),
  }
}

/** Checks backend names. `known` contains the names of all backends, usable or not. */
function checkNames(context: Context, known: readonly string[]): void {
  const { spec } = context.parent
  const find = (kind: 'VirtualMCPCompositeToolDefinition' | 'MCPWebhookConfig') => (name: string) =>
    context.find(kind, name)
  checkBackendNames(context, known, (names) => [
    ...unknownBackendsOf(spec, names, find('VirtualMCPCompositeToolDefinition')),
    ...unknownWebhookBackends(spec.webhookConfigRef, names, find('MCPWebhookConfig')),
  ])
}

function checkSessions({ parent, conditions, settings }: Context): void {
  const { sessionStorage, config } = parent.spec
  const provider = (sessionStorage ?? config?.sessionStorage)?.provider
  checkReplicaSessions(conditions, settings, provider, mostReplicas(parent.spec))
}

function checkSessionSecret(context: Context, needs: PodNeeds): SyncFailure | undefined {
  const { sessionStorage, config } = context.parent.spec
  // A store in spec.config gets its password from the user's podTemplateSpec.
  if (!sessionStorage && config?.sessionStorage) return undefined
  return checkSessionPassword(context, sessionStorage, needs)
}
