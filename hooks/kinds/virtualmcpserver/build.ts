/**
 * From a virtual server to its desired children, or to the faults that stand in the way.
 *
 * Everything is judged before anything is given up, so that all faults are known at once.
 */
import { createHash } from 'node:crypto'
import { formatViolations, type input, validateRuntime } from '../../../schemas/index.ts'
import { sizeFault } from '../../children/size.ts'
import type { Fault } from '../../conditions.ts'
import type { SyncContext } from '../../context.ts'
import type { Strategy } from '../../externalauth/index.ts'
import type { KubeObject, StringMap } from '../../kube.ts'
import { serviceUrl, virtualServerNames } from '../../names.ts'
import { PodNeeds } from '../../needs.ts'
import { specFault } from '../../references.ts'
import { toYaml } from '../../yaml.ts'
import { authServerFileOf, checkAuthServer, checkInvalidAuthServer } from './auth-server.ts'
import type { ResolvedBackend } from './backends.ts'
import { childrenOf, commonNeeds, podTemplate } from './children.ts'
import { configOf, restartHash } from './config.ts'
import { backendsWithNeeds } from './entries.ts'
import { type Incoming, incomingAuth } from './incoming.ts'
import { outgoingAuth } from './outgoing.ts'
import { authServerFile, configFile, port } from './paths.ts'
import { aggregation, compositeTools, checkGroup, optimizer, telemetry } from './references.ts'
import { checkSessions, checkSessionSecret } from './sessions.ts'

type Context = SyncContext<'VirtualMCPServer'>

export interface Built {
  /** Undefined when something needed is broken: what runs is kept. */
  readonly children: readonly KubeObject[] | undefined
  readonly backends: readonly ResolvedBackend[]
  /** For backends without a strategy of their own. */
  readonly defaultStrategy?: Strategy | undefined
  /** SHA-256 of config.yaml, hex; undefined when there is none. */
  readonly checksum: string | undefined
  readonly faults: readonly Fault[]
  readonly hashes: Readonly<Record<string, string | undefined>>
}

/** Address of the virtual server, with the path of its MCP endpoint. */
export function addressOf({ name, namespace, settings }: Context): string {
  return `${serviceUrl(virtualServerNames(name).server, namespace, settings.clusterDomain, port)}/mcp`
}

/** The files of the ConfigMap, before they are text. */
interface Files {
  readonly config: input.VmcpFile
  readonly authServer: input.AuthServerFile | undefined
}

export function build(context: Context): Built {
  const invalid = specFault(context.problems, 'ValidationFailed')
  context.conditions.check('Valid', invalid, 'ValidationSucceeded', 'Spec validation passed')
  if (invalid) {
    checkInvalidAuthServer(context)
    return { children: undefined, backends: [], checksum: undefined, faults: [invalid], hashes: {} }
  }
  const needs = new PodNeeds()
  commonNeeds(context, needs)
  const judged = judge(context, needs)
  const { backends, hashes } = judged
  if (!judged.files)
    return { children: undefined, backends, checksum: undefined, faults: judged.faults, hashes }
  const { config, authServer } = judged.files
  const pod = podTemplate(context, needs, restartHash(config, authServer, needs.revisionHash))
  const template = pod.faults && { reason: 'InvalidPodTemplateSpec', message: pod.faults.join('; ') }
  context.conditions.check(
    'PodTemplateSpecValid',
    template,
    'PodTemplateSpecValid',
    'The pod template is valid',
  )
  const texts = textsOf(judged.files)
  const stopped = { children: undefined, backends, checksum: undefined, hashes }
  if (!pod.template) return { ...stopped, faults: template ? [template] : [] }
  const checksum = createHash('sha256')
    .update(texts[configFile] ?? '')
    .digest('hex')
  const children = childrenOf(context, pod.template, texts, checksum)
  const size = sizeFault(children)
  if (size) return { ...stopped, faults: [size] }
  return { children, backends, defaultStrategy: judged.defaultStrategy, checksum, faults: [], hashes }
}

function judge(context: Context, needs: PodNeeds) {
  const group = checkGroup(context)
  const tools = compositeTools(context)
  const search = optimizer(context)
  const shown = aggregation(context)
  const observed = telemetry(context, needs)
  const incoming = incomingAuth(context, needs, addressOf(context))
  const server = checkAuthServer(context, incoming)
  const password = checkSessionSecret(context, needs)
  checkSessions(context)
  const hashes = hashesOf(incoming, observed.hash)
  for (const [what, hash] of Object.entries(hashes)) needs.revision(what, hash)
  const outgoing = outgoingAuth(context, needs)
  const backends = backendsWithNeeds(context, needs, outgoing)
  const parts = [
    tools.fault,
    search.fault,
    shown.fault,
    server,
    ...incoming.faults,
    observed.telemetry.fault,
    password,
  ]
  const faults = [group, ...parts].filter((fault) => fault !== undefined)
  const { defaultStrategy } = outgoing
  const stopped = { files: undefined, backends, hashes, defaultStrategy }
  if (faults.length > 0 || !incoming.auth || !shown.value) return { ...stopped, faults }
  const authServer = authServerFileOf(context, incoming, needs)
  const values = {
    incomingAuth: incoming.auth,
    aggregation: shown.value,
    compositeTools: tools.value,
    optimizer: search.value,
    telemetry: observed.telemetry.value,
    defaultStrategy,
    backends,
  }
  const files: Files = { config: configOf(context, values, needs), authServer }
  const wrong = filesFault(context, files)
  return wrong ? { ...stopped, faults: [wrong] } : { ...stopped, files, faults: [] }
}

function hashesOf({ oidcConfigHash, authzConfigHash }: Incoming, telemetryConfigHash: string | undefined) {
  return { oidcConfigHash, authzConfigHash, telemetryConfigHash }
}

/** A last guard: the runtime would refuse to start with a file that does not fit its schema. */
function filesFault({ conditions }: Context, { config, authServer }: Files): Fault | undefined {
  const problems = [
    ...validateRuntime('vmcp', config).problems,
    ...(authServer ? validateRuntime('authserver', authServer).problems : []),
  ]
  const fault = specFault(problems, 'ConfigInvalid')
  if (fault) {
    conditions.set(
      'Valid',
      false,
      fault.reason,
      `The configuration cannot be made: ${formatViolations(problems)}`,
    )
  }
  return fault
}

function textsOf({ config, authServer }: Files): StringMap {
  return {
    [configFile]: toYaml(config),
    ...(authServer && { [authServerFile]: toYaml(authServer) }),
  }
}
