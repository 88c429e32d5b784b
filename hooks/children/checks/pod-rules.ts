/**
 * Applies API server rules that go beyond types and that users' templates often violate once they are merged into the
 * generated template. The API server would reject the whole workload without reporting the error on the resource. The
 * hooks therefore report the error on the resource, in the API server's wording.
 *
 * Source: Kubernetes, pkg/apis/core/validation (ValidatePodTemplateSpec).
 */
import { type Fields, fieldsOf, isFields, listOf } from '../../base/kube.ts'

const probes = ['livenessProbe', 'readinessProbe', 'startupProbe'] as const
const handlers = ['exec', 'httpGet', 'tcpSocket', 'grpc'] as const
/** Volume fields that are not volume sources. */
const nonSourceFields = new Set(['name'])

/** Determines which parts of a pod template a check covers. */
export interface RuleScope {
  /**
   * Names of the generated containers that are later merged with the template. These containers may also add volumes.
   */
  readonly generated?: readonly string[]
  /**
   * The generated template and the user's template; set for a merged template. Errors use the list indexes of the
   * user's template.
   */
  readonly merged?: { readonly base: unknown; readonly user: unknown }
  /** The StatefulSet's volume claims; set for a complete template, to which no volumes are added later. */
  readonly claims?: readonly string[] | undefined
}

/** Returns one line per violated rule, in the form `path message`. */
export function podRuleErrors(template: unknown, path: string, scope: RuleScope): readonly string[] {
  const spec = specOf(template)
  const at = `${path}.spec`
  const own = itemsOf(spec['volumes']).map(({ item }) => item['name'])
  const volumes = scope.claims && new Set<unknown>([...own, ...scope.claims])
  const base = specOf(scope.merged?.base)
  const user = specOf(scope.merged?.user)
  return [
    ...restartPolicyErrors(spec['restartPolicy'], at),
    ...(['initContainers', 'containers'] as const).flatMap((list) =>
      itemsOf(spec[list], user[list]).flatMap(({ item, index }) => {
        const before = namedIn(base[list], item['name'])
        const given = namedIn(user[list], item['name'])
        const where = `${at}.${list}[${index}]`
        return [
          ...containerErrors(item, where, { scope, volumes, before, given }),
          ...(scope.merged ? rootErrors(item, where, spec['securityContext'], at) : []),
        ]
      }),
    ),
    ...itemsOf(spec['volumes'], user['volumes']).flatMap(({ item, index }) =>
      volumeErrors(item, `${at}.volumes[${index}]`, {
        isComplete: volumes !== undefined,
        before: namedIn(base['volumes'], item['name']),
      }),
    ),
  ]
}

function specOf(template: unknown): Fields {
  return fieldsOf(fieldsOf(template)['spec'])
}

function namedIn(list: unknown, name: unknown): Fields {
  return fieldsOf(listOf(list).find((item) => isFields(item) && item['name'] === name))
}

/**
 * Returns the objects of a list except `$patch` entries, each with its index in `user`. Without `user`, returns the
 * index in `list`.
 */
function itemsOf(list: unknown, user?: unknown): { readonly item: Fields; readonly index: number }[] {
  return listOf(list).flatMap((item, index) => {
    if (!isFields(item) || item['$patch'] !== undefined) return []
    const own = listOf(user).findIndex((entry) => isFields(entry) && entry['name'] === item['name'])
    return [{ item, index: own < 0 ? index : own }]
  })
}

function restartPolicyErrors(policy: unknown, path: string): string[] {
  return isAbsent(policy) || policy === 'Always'
    ? []
    : [`${path}.restartPolicy Unsupported value: ${JSON.stringify(policy)}: supported values: "Always"`]
}

interface ContainerContext {
  readonly scope: RuleScope
  readonly volumes: ReadonlySet<unknown> | undefined
  /** The generated container with the same name. */
  readonly before: Fields
  /** The user's container with the same name. */
  readonly given: Fields
}

function containerErrors(container: Fields, path: string, context: ContainerContext): string[] {
  const { scope, volumes, before, given } = context
  const { name, image } = container
  const hasImage = scope.generated?.includes(String(name)) || !(isAbsent(image) || image === '')
  return [
    ...(hasImage ? [] : [`${path}.image Required value`]),
    ...probes.flatMap((probe) => probeErrors(container[probe], `${path}.${probe}`, before[probe])),
    ...itemsOf(container['env'], given['env']).flatMap(({ item, index }) =>
      envErrors(item, `${path}.env[${index}]`, namedIn(before['env'], item['name'])),
    ),
    ...(volumes
      ? itemsOf(container['volumeMounts']).flatMap(({ item, index }) =>
          volumes.has(item['name'])
            ? []
            : [`${path}.volumeMounts[${index}].name Not found: ${JSON.stringify(item['name'])}`],
        )
      : []),
  ]
}

/**
 * Finds conflicts among mutually exclusive fields. `added` lists the fields to report: the fields that the user added
 * to a generated field, or otherwise all fields except the first. `hint` contains the name of the generated field.
 */
function moreThanOne(present: readonly string[], generated: unknown): { added: string[]; hint: string } {
  const before = present.filter((key) => !isAbsent(fieldsOf(generated)[key]))
  const added = present.filter((key) => !before.includes(key))
  const [kept] = before
  if (kept === undefined) return { added: added.slice(1), hint: '' }
  return { added, hint: ` (set ${kept} to null to replace it)` }
}

function probeErrors(probe: unknown, path: string, generated: unknown): string[] {
  const present = handlers.filter((handler) => !isAbsent(fieldsOf(probe)[handler]))
  const { added, hint } = moreThanOne(present, generated)
  return added.map(
    (handler) => `${path}.${handler} Forbidden: may not specify more than 1 handler type${hint}`,
  )
}

function envErrors(variable: Fields, path: string, generated: Fields): string[] {
  const { value, valueFrom } = variable
  const sources = Object.keys(fieldsOf(valueFrom)).filter((key) => !isAbsent(fieldsOf(valueFrom)[key]))
  const hasBoth = !isAbsent(value) && value !== '' && sources.length > 0
  const { hint: both } = moreThanOne(['value', 'valueFrom'], generated)
  const { added, hint } = moreThanOne(sources, generated['valueFrom'])
  return [
    ...(hasBoth
      ? [`${path}.valueFrom Invalid value: "": may not be specified when \`value\` is not empty${both}`]
      : []),
    ...(added.length > 0
      ? [`${path}.valueFrom Invalid value: "": may not have more than one field specified at a time${hint}`]
      : []),
  ]
}

function volumeErrors(
  volume: Fields,
  path: string,
  { isComplete, before }: { readonly isComplete: boolean; readonly before: Fields },
): string[] {
  const sources = Object.keys(volume).filter((key) => !nonSourceFields.has(key) && !isAbsent(volume[key]))
  const { added, hint } = moreThanOne(sources, before)
  const { path: host } = fieldsOf(volume['hostPath'])
  return [
    ...(isComplete && sources.length === 0 ? [`${path} Required value: must specify a volume type`] : []),
    ...added.map((source) => `${path}.${source} Forbidden: may not specify more than 1 volume type${hint}`),
    ...(typeof host === 'string' && host.split('/').includes('..')
      ? [`${path}.hostPath.path Invalid value: ${JSON.stringify(host)}: must not contain '..'`]
      : []),
  ]
}

/**
 * Rejects a container that sets `runAsNonRoot` but runs as root, because the kubelet does not start such a container.
 */
function rootErrors(container: Fields, path: string, podContext: unknown, podPath: string): string[] {
  const pod = fieldsOf(podContext)
  const own = fieldsOf(container['securityContext'])
  const isNonRoot = (own['runAsNonRoot'] ?? pod['runAsNonRoot']) === true
  if (!isNonRoot || (own['runAsUser'] ?? pod['runAsUser']) !== 0) return []
  const where = own['runAsUser'] === 0 ? path : podPath
  return [
    `${where}.securityContext.runAsUser Invalid value: 0: container ${String(container['name'])} sets runAsNonRoot; use another user or also set runAsNonRoot to false`,
  ]
}

function isAbsent(value: unknown): boolean {
  return value === undefined || value === null
}
