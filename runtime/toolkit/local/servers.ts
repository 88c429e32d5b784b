/**
 * Reads policies from manifests, from a virtual server's file, from a document with the fields of `authz`, or from
 * plain Cedar text. The hooks render the manifests, so that references and shared policies are resolved as in a
 * cluster.
 */
import { type Fields, isFields, invalidConfig } from '../../../schemas/index.ts'
import { parseVmcpConfig, readTextFile, type VmcpConfig } from '../../config/index.ts'
import { externalPoint, type PolicySet, type RuntimePoint } from '../../policy/index.ts'
import { settledCluster } from './cluster/settled-cluster.ts'
import { standardText } from '../terminal/input.ts'
import { readManifests } from '../manifests/read.ts'

/** Key of the virtual server's file in the ConfigMap that the hooks render. */
const configKey = 'config.yaml'

/** The source of decisions: policies, or an external decision point. */
export type PolicySource =
  | { readonly kind: 'policies'; readonly set: PolicySet }
  | { readonly kind: 'point'; readonly about: RuntimePoint }

/**
 * Rejects with INVALID_CONFIG when there are no policies and no decision point, or when several servers match and
 * `server` is not set. `option` is the flag that specified the paths.
 */
export async function readPolicies(
  paths: readonly string[],
  server?: string,
  option = '--policies',
): Promise<PolicySource> {
  const cedar = paths.filter((path) => path.endsWith('.cedar'))
  if (cedar.length > 0) {
    if (cedar.length < paths.length)
      throw invalidConfig('specify either .cedar files, or manifests and configuration files')
    return policiesIn(
      { policies: cedar.map((path) => readText(path)) },
      server ?? 'gatehouse',
      cedar.join(', '),
    )
  }
  const documents = readManifests(paths, () => standardText(option))
  const [only] = documents
  if (documents.length === 1 && only && Array.isArray(only.doc['policies']))
    return policiesIn(only.doc, server ?? textOf(only.doc['name']) ?? 'gatehouse', only.file)
  const configs = await readServers(paths, option)
  const candidates = configs.filter(({ name }) => server === undefined || name === server)
  const withPolicies = candidates.filter(({ incomingAuth }) => incomingAuth.authz?.type === 'cedar')
  const elsewhere = candidates.filter(({ incomingAuth }) => externalPoint(incomingAuth.authz))
  const named = withPolicies.length > 0 ? withPolicies : elsewhere
  const [config] = named
  if (!config)
    throw invalidConfig(
      `${paths.join(', ')}: no virtual server ${server ?? ''} with policies or a decision point`.replace(
        '  ',
        ' ',
      ),
    )
  if (named.length > 1)
    throw invalidConfig(
      `several virtual servers have ${withPolicies.length > 0 ? 'policies' : 'a decision point'}: choose one with --server (${named.map(({ name }) => name).join(', ')})`,
    )
  return sourceOf(config)
}

/** Throws INVALID_CONFIG when the server has neither policies nor a decision point. */
function sourceOf({ name, incomingAuth: { authz } }: VmcpConfig): PolicySource {
  const point = externalPoint(authz)
  if (point) return { kind: 'point', about: { serverName: name, point } }
  if (authz?.type !== 'cedar') throw invalidConfig(`${name}: has no policies`)
  const { type: _type, ...config } = authz
  return { kind: 'policies', set: { ...config, serverName: name } }
}

/** Returns the configurations of all virtual servers in `paths`. */
export async function readServers(paths: readonly string[], option = '-f'): Promise<readonly VmcpConfig[]> {
  const documents = readManifests(paths, () => standardText(option))
  const files = documents.filter(({ doc }) => doc['incomingAuth'] !== undefined && doc['kind'] === undefined)
  if (files.length > 0) return files.map(({ doc, file }) => parseVmcpConfig(JSON.stringify(doc), file))
  const { cluster, invalid } = await settledCluster(paths, undefined, option)
  if (!cluster) throw invalidConfig(invalid)
  return cluster.objects.flatMap(({ kind, data, metadata }: Fields) => {
    const text = isFields(data) ? data[configKey] : undefined
    if (kind !== 'ConfigMap' || typeof text !== 'string') return []
    return [parseVmcpConfig(text, isFields(metadata) ? textOf(metadata['name']) : undefined)]
  })
}

/** Fields of `authz` that affect a decision, and fields that this module ignores. */
const textMembers = ['entitiesJson', 'groupEntityType', 'groupClaimName', 'roleClaimName'] as const
const otherMembers = ['name', 'type', 'primaryUpstreamProvider', 'shadowPolicies', 'shadowReplaces']

/** Throws INVALID_CONFIG for an unknown field or a wrong type, which would otherwise be ignored. */
function policiesIn(document: Fields, serverName: string, source: string): PolicySource {
  const { policies, entitiesJson, groupEntityType, groupClaimName, roleClaimName } = document
  const texts = Array.isArray(policies) ? policies : []
  if (texts.length === 0 || !texts.every((text) => typeof text === 'string'))
    throw invalidConfig(`${source}: policies must be a list of at least one string`)
  const known = ['policies', ...textMembers, ...otherMembers]
  const unknown = Object.keys(document).find((member) => !known.includes(member))
  if (unknown !== undefined)
    throw invalidConfig(`${source}: ${unknown}: unknown field; expected one of ${known.join(', ')}`)
  const wrong = textMembers.find((member) => document[member] !== undefined && !isText(document[member]))
  if (wrong !== undefined) throw invalidConfig(`${source}: ${wrong}: must be a string`)
  const set = {
    serverName,
    policies: texts,
    entitiesJson: textOf(entitiesJson) ?? '[]',
    groupEntityType: textOf(groupEntityType) ?? 'ServiceGroup',
    ...(textOf(groupClaimName) === undefined ? {} : { groupClaimName: textOf(groupClaimName) ?? '' }),
    ...(textOf(roleClaimName) === undefined ? {} : { roleClaimName: textOf(roleClaimName) ?? '' }),
  }
  return { kind: 'policies', set }
}

function readText(path: string): string {
  return readTextFile(path, `${path}:`)
}

function isText(value: unknown): value is string {
  return typeof value === 'string'
}

function textOf(value: unknown): string | undefined {
  return isText(value) ? value : undefined
}
