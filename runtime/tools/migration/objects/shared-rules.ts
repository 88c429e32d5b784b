/** Rules shared by several kinds and files. */
import { fieldsOf, isFields, localCommandAnnotation } from '../../../../schemas/index.ts'
import { quoteCommand } from '../../../toolkit/clients/index.ts'
import type { MigrationDraft } from './draft.ts'
import { runnerImage } from './protocol-image.ts'
import { convertWorkflow } from './workflow-rules.ts'

/** ToolHive proxy variables that have the same meaning in Gatehouse. */
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
  for (const { parent, value, path } of draft.fieldsAt(`${at}.env[].name`)) {
    const [, name] = /^TOOLHIVE_(.+)$/.exec(String(value)) ?? []
    if (name === undefined) continue
    if (sameVariables.has(name)) {
      parent['name'] = `GATEHOUSE_${name}`
      draft.note(path, 'renamed', `is now GATEHOUSE_${name}`)
    } else
      draft.note(path, 'differs', `${String(value)} has no effect here, but is still passed to the proxy`)
  }
  const annotations = fieldsOf(draft.value(`${at}.podTemplateMetadataOverrides.annotations`))
  if (Object.keys(annotations).some((key) => key.includes('.hashicorp.com/agent-inject'))) {
    draft.note(
      `${at}.podTemplateMetadataOverrides.annotations`,
      'lost',
      'the injected agent’s files are not read as server variables: copy the values to a Secret and refer to it in spec.secrets',
    )
  }
}

/** Renames containers in a pod template. */
export function renameContainer(draft: MigrationDraft, from: string, to: string): void {
  for (const { parent, key, value, path } of draft.fieldsAt('spec.podTemplateSpec.spec.containers[].name')) {
    if (value !== from) continue
    parent[key] = to
    draft.note(path, 'renamed', `${JSON.stringify(from)} is now ${JSON.stringify(to)}`)
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
      ? 'is enforced with a NetworkPolicy: the server cannot reach anything outside its pod'
      : 'is enforced with a NetworkPolicy, which supports ports, but not host names or paths',
  )
}

/** Replaces a package image with its command, and notes how a stdio server without a command runs. */
export function convertImage(draft: MigrationDraft, builder?: string): void {
  const [field] = draft.fieldsAt('spec.image')
  if (typeof field?.value !== 'string') return
  const runner = runnerImage(field.value, builder)
  if (runner) {
    field.parent['image'] = runner.image
    setCommand(draft, runner.command)
    const metadata = fieldsOf(draft.doc['metadata'])
    const args = draft.fieldsAt('spec.args').flatMap(({ value }) => (Array.isArray(value) ? value : []))
    const words = quoteCommand([...runner.local, ...args.map(String)])
    draft.doc['metadata'] = {
      ...metadata,
      annotations: { ...fieldsOf(metadata['annotations']), [localCommandAnnotation]: words },
    }
    draft.note(
      field.path,
      'differs',
      'is not built into an image: the package is downloaded when the pod starts',
    )
    return
  }
  if (/^(?:npx|uvx|go):\/\/|^toolhivelocal\//.test(field.value)) {
    draft.note(
      field.path,
      'lost',
      'was built on one machine: push the image to a registry, and set its name here',
    )
  }
  const transport = draft.value('spec.transport') ?? 'stdio'
  if (transport === 'stdio' && !hasCommand(draft)) {
    draft.note(
      field.path,
      'differs',
      "runs with its image's own entrypoint, to which the proxy attaches, and serves all sessions with one process. If podTemplateSpec sets a command for the container mcp, each session has its own process",
    )
  }
}

function hasCommand(draft: MigrationDraft): boolean {
  return draft
    .fieldsAt('spec.podTemplateSpec.spec.containers[].command')
    .some(({ parent, value }) => parent['name'] === 'mcp' && Array.isArray(value) && value.length > 0)
}

function setCommand(draft: MigrationDraft, command: readonly string[]): void {
  const mcp = draft
    .fieldsAt('spec.podTemplateSpec.spec.containers[].name')
    .find(({ value }) => value === 'mcp')
  if (mcp) {
    mcp.parent['command'] ??= [...command]
    return
  }
  const spec = fieldsOf(draft.doc['spec'])
  const template = fieldsOf(spec['podTemplateSpec'])
  const pod = fieldsOf(template['spec'])
  const otherContainers = Array.isArray(pod['containers']) ? pod['containers'].filter(isFields) : []
  const containers = [...otherContainers, { name: 'mcp', command: [...command] }]
  draft.doc['spec'] = {
    ...spec,
    podTemplateSpec: { ...template, spec: { ...pod, containers } },
  }
}

/**
 * Converts the settings of a virtual server. `parent` is `spec.config` for the kind and '' for a configuration file.
 */
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
  const oneListener = 'metrics are available only on the main port'
  draft.drop(`${at}telemetry.prometheusPort`, 'differs', oneListener)
  for (const { parent, key, value, path } of draft.fieldsAt(`${at}telemetry.metricsOnTransportPort`)) {
    delete parent[key]
    if (value === false) draft.note(path, 'differs', oneListener)
  }
  draft.revalue(`${at}operational.failureHandling.partialFailureMode`, { bestEffort: 'best_effort' })
  for (const { parent, path } of draft.fieldsAt(`${at}incomingAuth.oidc.audience`)) {
    if (typeof parent['clientId'] === 'string' && parent['clientId'] !== '') continue
    parent['clientId'] = parent['audience']
    draft.note(path.replace(/audience$/, 'clientId'), 'differs', 'is required, so it was set to the audience')
  }
  convertWorkflow(draft, `${at}compositeTools[]`, tools)
}
