/**
 * From a virtual server to its desired children, or to the errors that stand in the way.
 *
 * Everything is checked before anything is given up, so that all errors are known at once.
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
import { checkNames } from './config/backend-names.ts'
import type { ResolvedBackend } from './config/backends.ts'
import { childrenOf, commonNeeds, podTemplate } from './children.ts'
import { configOf, restartHash } from './config/config.ts'
import { checkConsoleSecret } from './config/console.ts'
import { backendsWithNeeds } from './config/entries.ts'
import { checkFiles, type Files } from './config/files.ts'
import { type Incoming, incomingAuth } from './config/incoming.ts'
import { outgoingAuth } from './config/outgoing.ts'
import { configFile, port } from './paths.ts'
import { aggregation, compositeTools, checkGroup, optimizer, telemetry, webhooks } from './references.ts'
import { checkSessions, checkSessionSecret } from './config/sessions.ts'

type Context = SyncContext<'VirtualMCPServer'>

export interface BuiltVirtualServer {
  /** Undefined when something needed is broken: what runs stays. */
  readonly children: readonly KubeObject[] | undefined
  readonly backends: readonly ResolvedBackend[]
  /** For backends without a strategy of their own. */
  readonly defaultStrategy?: Strategy | undefined
  /** SHA-256 of config.yaml, hex; undefined when there is none. */
  readonly checksum: string | undefined
  readonly failures: readonly SyncFailure[]
  readonly hashes: Readonly<Record<string, string | undefined>>
}

/** Address of the virtual server, with the path of its MCP endpoint. */
export function addressOf(context: Context): string {
  const { name, namespace, settings } = context
  const base = serviceUrl(virtualServerNames(name).server, namespace, settings.clusterDomain, port)
  return `${servedUrl(context, base)}/mcp`
}

/** The same for clients outside the cluster; undefined where nothing leads to it. */
export function externalAddressOf(context: Context): string | undefined {
  return externalUrl(context, context.spec.exposure, addressOf(context))
}

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
  const checked = check(context, needs)
  const { backends, hashes } = checked
  if (!checked.files) {
    // What the rest of the file would add to the pod is not known; the template itself is checked all the same.
    const { violations } = podTemplate(context, needs, '')
    checkTemplate(context, violations && mergeFailure(violations))
    return { children: undefined, backends, checksum: undefined, failures: checked.failures, hashes }
  }
  const { config, authServer } = checked.files
  const pod = podTemplate(context, needs, restartHash(config, authServer, needs.revisionHash))
  const template = pod.violations && mergeFailure(pod.violations)
  checkTemplate(context, template)
  const texts = textsOf(checked.files)
  const stopped = { children: undefined, backends, checksum: undefined, hashes }
  if (!pod.template) return { ...stopped, failures: template ? [template] : [] }
  const checksum = createHash('sha256')
    .update(texts[configFile] ?? '')
    .digest('hex')
  const children = childrenOf(context, pod.template, texts, checksum)
  const size = sizeFailure(children)
  if (size) return { ...stopped, failures: [size] }
  return { children, backends, defaultStrategy: checked.defaultStrategy, checksum, failures: [], hashes }
}

/** As for other kinds, under the names that this kind has. */
function checkTemplate({ conditions }: Context, failure: SyncFailure | undefined): void {
  conditions.check('PodTemplateSpecValid', failure, 'PodTemplateSpecValid', 'The pod template is valid')
}

function check(context: Context, needs: PodNeeds) {
  const group = checkGroup(context)
  const tools = compositeTools(context)
  const search = optimizer(context)
  const shown = aggregation(context)
  const observed = telemetry(context, needs)
  const asked = webhooks(context, needs)
  const incoming = incomingAuth(context, needs, externalAddressOf(context) ?? addressOf(context))
  const server = checkAuthServer(context, incoming)
  const password = checkSessionSecret(context, needs)
  const consoleSecret = checkConsoleSecret(context, needs)
  const tls = checkTls(context, addressOf(context))
  checkSessions(context)
  const revisions = hashesOf(incoming, observed.hash)
  for (const [what, hash] of Object.entries(revisions)) needs.revision(what, hash)
  // The running server reloads its webhooks and their files.
  const hashes = { ...revisions, webhookConfigHash: asked.hash }
  const outgoing = outgoingAuth(context, needs)
  const backends = backendsWithNeeds(context, needs, outgoing, shown.failures)
  // Without its group nobody knows the members.
  if (group?.reason !== 'GroupRefNotFound') {
    checkNames(
      context,
      backends.map((backend) => backend.name),
    )
  }
  const parts = [
    tools.failure,
    search.failure,
    server,
    ...incoming.failures,
    observed.telemetry.failure,
    asked.webhooks.failure,
    password,
    consoleSecret,
    tls,
  ]
  const broken = [group, ...parts].filter((failure) => failure !== undefined)
  const { defaultStrategy } = outgoing
  const stopped = { files: undefined, backends, hashes, defaultStrategy }
  if (broken.length > 0 || !incoming.auth) return { ...stopped, failures: broken }
  const authServer = authServerFileOf(context, incoming, needs)
  const values = {
    incomingAuth: incoming.auth,
    aggregation: shown.aggregation,
    compositeTools: tools.value,
    optimizer: search.value,
    telemetry: observed.telemetry.value,
    webhooks: asked.webhooks.value,
    defaultStrategy,
    backends,
    address: addressOf(context),
  }
  const files: Files = { config: configOf(context, values, needs), authServer }
  const checked = checkFiles(context, files, backends)
  const failures = checked.failure ? [checked.failure] : []
  return { ...stopped, backends: checked.backends, files: checked.files, failures }
}

function hashesOf({ oidcConfigHash, authzConfigHash }: Incoming, telemetryConfigHash: string | undefined) {
  return { oidcConfigHash, authzConfigHash, telemetryConfigHash }
}

function textsOf({ config, authServer }: Files): StringMap {
  return {
    [configFile]: toYaml(config),
    ...(authServer && { [authServerFile]: toYaml(authServer) }),
  }
}
