/**
 * From a judged resource to its desired children, or to the faults that stand in the way.
 */
import { createHash } from 'node:crypto'
import {
  formatProblems,
  type MCPExternalAuthConfig,
  validateRuntime,
  type VirtualMCPServer,
  withDefaults,
} from '../../../schemas/index.ts'
import type { Fault } from '../../conditions.ts'
import type { SyncContext } from '../../context.ts'
import { toStrategy } from '../../externalauth/index.ts'
import { addHeaderForward } from '../../header-forward.ts'
import { fieldsOf, type KubeObject } from '../../kube.ts'
import { serviceUrl, virtualServerNames } from '../../names.ts'
import { PodNeeds } from '../../needs.ts'
import { authConfigFault, configHashOf, specFault } from '../../references.ts'
import { toYaml } from '../../yaml.ts'
import { authServerFileOf, judgeAuthServer } from './auth-server.ts'
import { caBundleOf, type ResolvedBackend, resolveBackends } from './backends.ts'
import { childrenOf, commonNeeds, podTemplate } from './children.ts'
import { configOf, restartHash } from './config.ts'
import { incomingAuth } from './incoming.ts'
import { strategyResolver } from './outgoing.ts'
import { authServerFile, caBundleDirectory, configFile, port } from './paths.ts'
import { aggregation, compositeTools, judgeGroup, optimizer, telemetry } from './references.ts'

type Context = SyncContext<VirtualMCPServer>

export interface Built {
  /** Undefined when something needed is broken: what runs is kept. */
  readonly children: readonly KubeObject[] | undefined
  readonly backends: readonly ResolvedBackend[]
  /** SHA-256 of config.yaml, hex. */
  readonly checksum: string | undefined
  readonly faults: readonly Fault[]
  readonly hashes: Readonly<Record<string, string | undefined>>
}

/** Address of the virtual server, with the path of its MCP endpoint. */
export function addressOf({ name, namespace, settings }: Context): string {
  return `${serviceUrl(virtualServerNames(name).server, namespace, settings.clusterDomain, port)}/mcp`
}

export function build(context: Context): Built {
  const { conditions } = context
  const invalid = specFault(context.problems, 'ValidationFailed')
  conditions.check('Valid', invalid, 'ValidationSucceeded', 'Spec validation passed')
  if (invalid)
    return { children: undefined, backends: [], checksum: undefined, faults: [invalid], hashes: {} }
  const needs = new PodNeeds()
  commonNeeds(context, needs)
  const group = judgeGroup(context)
  const tools = compositeTools(context)
  const search = optimizer(context)
  const shown = aggregation(context)
  const { telemetry: observed, hash: telemetryConfigHash } = telemetry(context, needs)
  const incoming = incomingAuth(context, needs, addressOf(context))
  const server = judgeAuthServer(context, incoming)
  const secrets = judgeSecrets(context, needs)
  const { oidcConfigHash, authzConfigHash } = incoming
  const hashes = { oidcConfigHash, authzConfigHash, telemetryConfigHash }
  for (const [what, hash] of Object.entries(hashes)) needs.revision(what, hash)
  const { backends, defaultStrategy } = outgoing(context, needs)
  const authServer = server ? undefined : authServerFileOf(context, incoming, needs)
  const faults = [
    group,
    tools.fault,
    search.fault,
    shown.fault,
    server,
    ...incoming.faults,
    observed.fault,
    secrets,
    defaultStrategy.fault,
  ].filter((fault) => fault !== undefined)
  const stopped = { children: undefined, backends, checksum: undefined, hashes }
  if (faults.length > 0 || !incoming.auth || !shown.value) return { ...stopped, faults }
  const config = configOf(
    context,
    {
      incomingAuth: incoming.auth,
      aggregation: shown.value,
      compositeTools: tools.value,
      optimizer: search.value,
      telemetry: observed.value,
      defaultStrategy: defaultStrategy.value,
      backends,
    },
    needs,
  )
  const problems = [
    ...validateRuntime('vmcp', config).problems,
    ...(authServer ? validateRuntime('authserver', authServer).problems : []),
  ]
  const wrong = specFault(problems, 'ConfigInvalid')
  if (wrong) {
    conditions.set(
      'Valid',
      false,
      wrong.reason,
      `The configuration cannot be made: ${formatProblems(problems)}`,
    )
    return { ...stopped, faults: [wrong] }
  }
  const text = toYaml(config as unknown as Readonly<Record<string, unknown>>)
  const checksum = createHash('sha256').update(text).digest('hex')
  const files = {
    [configFile]: text,
    ...(authServer && {
      [authServerFile]: toYaml(authServer as unknown as Readonly<Record<string, unknown>>),
    }),
  }
  const pod = podTemplate(context, needs, restartHash(config, authServer, needs.revisionHash))
  const template = pod.faults && { reason: 'InvalidPodTemplateSpec', message: pod.faults.join('; ') }
  conditions.check('PodTemplateSpecValid', template, 'PodTemplateSpecValid', 'The pod template is valid')
  if (!pod.template) return { ...stopped, faults: template ? [template] : [] }
  return {
    children: childrenOf(context, pod.template, files, checksum),
    backends,
    checksum,
    faults: [],
    hashes,
  }
}

/** Secrets that the resource names itself. */
function judgeSecrets(context: Context, needs: PodNeeds): Fault | undefined {
  const password = context.parent.spec.sessionStorage?.passwordRef
  if (!password) return undefined
  needs.revision('sessionStorage', context.secretRevision([password]))
  const missing = context.missingSecrets([password])
  if (missing.length === 0) return undefined
  return {
    reason: 'SecretNotFound',
    message: `spec.sessionStorage.passwordRef: not found: ${missing.join('; ')}`,
  }
}

/** Backends with their strategies, and the default one. Sets the conditions of the configurations in use. */
function outgoing(context: Context, needs: PodNeeds) {
  const upstreams = context.parent.spec.authServerConfig?.upstreamProviders.map(({ name }) => name)
  const used = new Map<string, ReturnType<typeof resolveConfig>>()
  const resolve = (name: string) => {
    let result = used.get(name)
    if (!result) {
      result = resolveConfig(context, needs, name, upstreams)
      used.set(name, result)
    }
    return result
  }
  const backends = resolveBackends(context, strategyResolver(context.parent, resolve))
  for (const resolved of backends) {
    setBackendCondition(context, resolved)
    if (resolved.backend) addEntryNeeds(context, needs, resolved)
  }
  const fallback = context.parent.spec.outgoingAuth?.default
  if (fallback?.type !== 'externalAuthConfigRef' || !fallback.externalAuthConfigRef) {
    return { backends, defaultStrategy: { value: undefined, fault: undefined } }
  }
  const { strategy, fault } = resolve(fallback.externalAuthConfigRef.name)
  context.conditions.check(
    'DefaultAuthConfig',
    fault,
    'ConversionSucceeded',
    'The default authentication is set',
  )
  return { backends, defaultStrategy: { value: strategy, fault: undefined } }
}

function resolveConfig(
  context: Context,
  needs: PodNeeds,
  name: string,
  upstreams: readonly string[] | undefined,
) {
  const fault = authConfigFault(context, name, 'ConversionFailed', 'ConversionFailed')
  if (fault) return { fault, strategy: undefined }
  const config = withDefaults(context.find('MCPExternalAuthConfig', name)) as MCPExternalAuthConfig
  const part = toStrategy(config, { needs, upstreams, enableObo: context.settings.enableObo })
  if (part.fault) return { fault: part.fault, strategy: undefined }
  needs.revision(`externalAuth ${name}`, configHashOf(context, 'MCPExternalAuthConfig', name))
  return { strategy: part.value ?? ({ type: 'unauthenticated' } as const), fault: undefined }
}

function setBackendCondition(context: Context, resolved: ResolvedBackend): void {
  if (resolved.authConfigRef === undefined) return
  const entries = context.parent.spec.outgoingAuth?.backends ?? {}
  const explicit =
    Object.hasOwn(entries, resolved.name) && entries[resolved.name]?.type === 'externalAuthConfigRef'
  const type = `${explicit ? 'BackendAuthConfig' : 'DiscoveredAuthConfig'}-${resolved.name}`
  context.conditions.check(
    type,
    resolved.fault,
    'ConversionSucceeded',
    `Uses MCPExternalAuthConfig ${resolved.authConfigRef}`,
  )
}

/** Environment and volumes that only entries need: headers and trust anchors. */
function addEntryNeeds(context: Context, needs: PodNeeds, { name, member, backend }: ResolvedBackend): void {
  if (member?.kind !== 'MCPServerEntry' || !backend) return
  const entry = withDefaults(member.object) as { readonly spec: { readonly headerForward?: never } }
  addHeaderForward(needs, name, entry.spec.headerForward)
  const bundle = caBundleOf(context, member)
  if (bundle) needs.configFiles(`ca-bundle-${name}`, `${caBundleDirectory}/${name}`, bundle.configMap)
  const verdict = fieldsOf(member.object['status'])['conditions']
  needs.revision(`entry ${name}`, headerRevision(verdict))
}

/** The entry's own sync puts the revision of its header Secrets into a message, for they are two hops away from here. */
function headerRevision(conditions: unknown): string | undefined {
  const list: unknown[] = Array.isArray(conditions) ? conditions : []
  const found = list.map(fieldsOf).find((condition) => condition['type'] === 'HeaderSecretRefsValidated')
  const message = found?.['message']
  return typeof message === 'string' ? message : undefined
}
