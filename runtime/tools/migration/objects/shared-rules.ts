/** Rules that several kinds and files share. */
import { fieldsOf, isFields, localCommandAnnotation } from '../../../../schemas/index.ts'
import { quoteCommand } from '../../../toolkit/clients/index.ts'
import type { MigrationDraft } from './draft.ts'
import { runnerImage } from './protocol-image.ts'
import { convertWorkflow } from './workflow-rules.ts'

/** Variables of the other proxy that have the same meaning here. */
const sameVariables: ReadonlySet<string> = new Set([
  'DEBUG',
  'REMOTE_OAUTH_CLIENT_SECRET',
  'REMOTE_AUTH_BEARER_TOKEN',
  'OIDC_CLIENT_SECRET',
  'TOKEN_EXCHANGE_CLIENT_SECRET',
  'DISABLE_ENV_FALLBACK',
])

export function convertProxyOverrides(draft: MigrationDraft): void {
  const at = 'spec.resourceOverrides.proxyDeployment'
  for (const { parent, value, path } of draft.places(`${at}.env[].name`)) {
    const [, name] = /^TOOLHIVE_(.+)$/.exec(String(value)) ?? []
    if (name === undefined) continue
    if (sameVariables.has(name)) {
      parent['name'] = `GATEHOUSE_${name}`
      draft.note(path, 'renamed', `is GATEHOUSE_${name}`)
    } else draft.note(path, 'differs', `${String(value)} has no meaning here; it is passed on all the same`)
  }
  const annotations = fieldsOf(draft.value(`${at}.podTemplateMetadataOverrides.annotations`))
  if (Object.keys(annotations).some((key) => key.includes('.hashicorp.com/agent-inject'))) {
    draft.note(
      `${at}.podTemplateMetadataOverrides.annotations`,
      'lost',
      'files of the injected agent are not read as variables of the server: copy the values into a Secret and name it in spec.secrets',
    )
  }
}

/** Containers of a pod template under another name. */
export function renameContainer(draft: MigrationDraft, from: string, to: string): void {
  for (const { parent, key, value, path } of draft.places('spec.podTemplateSpec.spec.containers[].name')) {
    if (value !== from) continue
    parent[key] = to
    draft.note(path, 'renamed', `${JSON.stringify(from)} is ${JSON.stringify(to)}`)
  }
}

export function noteProfile(draft: MigrationDraft): void {
  const profile = fieldsOf(draft.value('spec.permissionProfile'))
  if (profile['name'] === undefined) return
  const isNone = (profile['type'] ?? 'builtin') === 'builtin' && profile['name'] === 'none'
  draft.note(
    'spec.permissionProfile',
    'differs',
    isNone
      ? 'is enforced here, by a NetworkPolicy: the server reaches nothing outside of its pod'
      : 'is enforced here, by a NetworkPolicy, as far as one can: ports, but no host names and no paths',
  )
}

/** The command of a package in place of its image; and what becomes of a stdio server without one. */
export function convertImage(draft: MigrationDraft, builder?: string): void {
  const [place] = draft.places('spec.image')
  if (typeof place?.value !== 'string') return
  const runner = runnerImage(place.value, builder)
  if (runner) {
    place.parent['image'] = runner.image
    setCommand(draft, runner.command)
    const metadata = fieldsOf(draft.doc['metadata'])
    const args = draft.places('spec.args').flatMap(({ value }) => (Array.isArray(value) ? value : []))
    const words = quoteCommand([...runner.local, ...args.map(String)])
    draft.doc['metadata'] = {
      ...metadata,
      annotations: { ...fieldsOf(metadata['annotations']), [localCommandAnnotation]: words },
    }
    draft.note(
      place.path,
      'differs',
      'is not built into an image: the package is fetched when the pod starts',
    )
    return
  }
  if (/^(?:npx|uvx|go):\/\/|^toolhivelocal\//.test(place.value)) {
    draft.note(place.path, 'lost', 'was built on one machine: push it to a registry and name it here')
  }
  const transport = draft.value('spec.transport') ?? 'stdio'
  if (transport === 'stdio' && !hasCommand(draft)) {
    draft.note(
      place.path,
      'differs',
      "runs with its image's own entrypoint, which the proxy attaches to, and serves all sessions with one process. A command in podTemplateSpec, container mcp, gives each session a process of its own",
    )
  }
}

function hasCommand(draft: MigrationDraft): boolean {
  return draft
    .places('spec.podTemplateSpec.spec.containers[].command')
    .some(({ parent, value }) => parent['name'] === 'mcp' && Array.isArray(value) && value.length > 0)
}

function setCommand(draft: MigrationDraft, command: readonly string[]): void {
  const mcp = draft.places('spec.podTemplateSpec.spec.containers[].name').find(({ value }) => value === 'mcp')
  if (mcp) {
    mcp.parent['command'] ??= [...command]
    return
  }
  const spec = fieldsOf(draft.doc['spec'])
  const template = fieldsOf(spec['podTemplateSpec'])
  const pod = fieldsOf(template['spec'])
  const others = Array.isArray(pod['containers']) ? pod['containers'].filter(isFields) : []
  const containers = [...others, { name: 'mcp', command: [...command] }]
  draft.doc['spec'] = {
    ...spec,
    podTemplateSpec: { ...template, spec: { ...pod, containers } },
  }
}

/** Settings of a virtual server: `spec.config` of the kind, '' for a file of its own. */
export function convertVirtualServer(
  draft: MigrationDraft,
  parent: string,
  tools: ReadonlyMap<string, string>,
): void {
  const at = parent === '' ? '' : `${parent}.`
  draft.revalue(`${at}optimizer.embeddingProvider`, { openai: 'compat' })
  for (const strategy of [`${at}outgoingAuth.default`, `${at}outgoingAuth.backends{}`]) {
    draft.revalue(`${strategy}.type`, { aws_sts: 'cloud_sts' })
    draft.rename(`${strategy}.awsSts`, 'cloudSts')
  }
  const oneListener = 'metrics are on the main port only'
  draft.drop(`${at}telemetry.prometheusPort`, 'differs', oneListener)
  for (const { parent, key, value, path } of draft.places(`${at}telemetry.metricsOnTransportPort`)) {
    delete parent[key]
    if (value === false) draft.note(path, 'differs', oneListener)
  }
  draft.revalue(`${at}operational.failureHandling.partialFailureMode`, { bestEffort: 'best_effort' })
  for (const { parent, path } of draft.places(`${at}incomingAuth.oidc.audience`)) {
    if (typeof parent['clientId'] === 'string' && parent['clientId'] !== '') continue
    parent['clientId'] = parent['audience']
    draft.note(path.replace(/audience$/, 'clientId'), 'differs', 'is required; set to the audience')
  }
  convertWorkflow(draft, `${at}compositeTools[]`, tools)
}

/** Fields of the embedded authorization server that have no counterpart. None of them is a guard. */
export function convertAuthServer(draft: MigrationDraft, at: string): void {
  const lost: Readonly<Record<string, string>> = {
    forceConfidentialRedirectUris: 'only clients that ask for a secret become confidential',
    insecureAllowConfidentialOverLoopbackHTTP: 'confidential clients need no permission for loopback issuers',
    delegateClients: 'clients cannot be declared for delegation',
    trustedIssuers: 'tokens of other issuers are not exchanged',
    'upstreamProviders[].oauth2Config.allowPrivateIPs': 'private addresses are refused',
    'upstreamProviders[].oauth2Config.insecureAllowHTTP': 'plain http is refused',
  }
  for (const [field, text] of Object.entries(lost)) draft.drop(`${at}.${field}`, 'lost', text)
}
