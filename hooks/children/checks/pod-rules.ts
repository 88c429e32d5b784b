/**
 * Rules of the API server for a pod template beyond the types of its members: those that people meet when they put a
 * template of their own over a generated one. The API server would refuse the whole workload, and say so to nobody who
 * looks at the resource, so the same is said here, in its words.
 *
 * Source: Kubernetes, pkg/apis/core/validation (ValidatePodTemplateSpec).
 */
import { type Fields, fieldsOf, isFields, listOf } from '../../kube.ts'

const probes = ['livenessProbe', 'readinessProbe', 'startupProbe'] as const
const handlers = ['exec', 'httpGet', 'tcpSocket', 'grpc'] as const
/** Members of a volume that are no source. */
const volumeName = new Set(['name'])

/**
 * One line per broken rule, `path message`. `generated` are the containers that are added later: of a template that is to
 * be put over another one, where a volume, too, may be in the other. Undefined for a whole template, which may mount the
 * `claims` of its StatefulSet as well.
 */
export function podRuleErrors(
  template: unknown,
  path: string,
  generated: readonly string[] | undefined,
  claims: readonly string[] = [],
): readonly string[] {
  const spec = fieldsOf(fieldsOf(template)['spec'])
  const at = `${path}.spec`
  const own = itemsOf(spec['volumes']).map(({ item }) => item['name'])
  const volumes = generated ? undefined : new Set<unknown>([...own, ...claims])
  return [
    ...restartPolicyErrors(spec['restartPolicy'], at),
    ...(['initContainers', 'containers'] as const).flatMap((list) =>
      itemsOf(spec[list]).flatMap(({ item, index }) =>
        containerErrors(item, `${at}.${list}[${index}]`, { generated, volumes }),
      ),
    ),
    ...itemsOf(spec['volumes']).flatMap(({ item, index }) =>
      volumeErrors(item, `${at}.volumes[${index}]`, generated === undefined),
    ),
  ]
}

/** The objects of a list, without those that only remove something. */
function itemsOf(list: unknown): { readonly item: Fields; readonly index: number }[] {
  return listOf(list).flatMap((item, index) =>
    isFields(item) && item['$patch'] === undefined ? [{ item, index }] : [],
  )
}

function restartPolicyErrors(policy: unknown, path: string): string[] {
  return isAbsent(policy) || policy === 'Always'
    ? []
    : [`${path}.restartPolicy Unsupported value: ${JSON.stringify(policy)}: supported values: "Always"`]
}

interface Around {
  readonly generated: readonly string[] | undefined
  readonly volumes: ReadonlySet<unknown> | undefined
}

function containerErrors(container: Fields, path: string, { generated, volumes }: Around): string[] {
  const { name, image } = container
  const isOwn = !generated?.includes(String(name))
  return [
    ...(isOwn && (isAbsent(image) || image === '') ? [`${path}.image Required value`] : []),
    ...probes.flatMap((probe) => probeErrors(container[probe], `${path}.${probe}`)),
    ...itemsOf(container['env']).flatMap(({ item, index }) => envErrors(item, `${path}.env[${index}]`)),
    ...(volumes
      ? itemsOf(container['volumeMounts']).flatMap(({ item, index }) =>
          volumes.has(item['name'])
            ? []
            : [`${path}.volumeMounts[${index}].name Not found: ${JSON.stringify(item['name'])}`],
        )
      : []),
  ]
}

function probeErrors(probe: unknown, path: string): string[] {
  const [first, ...more] = handlers.filter((handler) => !isAbsent(fieldsOf(probe)[handler]))
  return more.map(
    (handler) =>
      `${path}.${handler} Forbidden: may not specify more than 1 handler type (set ${first} to null to replace it)`,
  )
}

function envErrors(variable: Fields, path: string): string[] {
  const { value, valueFrom } = variable
  const sources = Object.values(fieldsOf(valueFrom)).filter((source) => !isAbsent(source))
  const both = !isAbsent(value) && value !== '' && sources.length > 0
  return [
    ...(both
      ? [`${path}.valueFrom Invalid value: "": may not be specified when \`value\` is not empty`]
      : []),
    ...(sources.length > 1
      ? [`${path}.valueFrom Invalid value: "": may not have more than one field specified at a time`]
      : []),
  ]
}

function volumeErrors(volume: Fields, path: string, isWhole: boolean): string[] {
  const sources = Object.keys(volume).filter((key) => !volumeName.has(key) && !isAbsent(volume[key]))
  const [first, ...more] = sources
  const { path: host } = fieldsOf(volume['hostPath'])
  return [
    ...(isWhole && first === undefined ? [`${path} Required value: must specify a volume type`] : []),
    ...more.map(
      (source) =>
        `${path}.${source} Forbidden: may not specify more than 1 volume type (set ${first} to null to replace it)`,
    ),
    ...(typeof host === 'string' && host.split('/').includes('..')
      ? [`${path}.hostPath.path Invalid value: ${JSON.stringify(host)}: must not contain '..'`]
      : []),
  ]
}

function isAbsent(value: unknown): boolean {
  return value === undefined || value === null
}
