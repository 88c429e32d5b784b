/** `gatehouse cluster logs` uses `kubectl logs` to print the logs of all pods that belong to an object. */
import { type Fields, GatehouseError, invalidConfig } from '../../../schemas/index.ts'
import { exitCode, printError } from '../../toolkit/terminal/output.ts'
import { outputWriter } from '../../toolkit/terminal/plain-text.ts'
import { ownWorkloads, selectorOf, type Workload } from './facts.ts'
import { kubectlFlags, startKubectl } from './kubectl.ts'
import { type ClusterFlags, openCluster, parseNamed, readNamed } from './reader.ts'
import { listAt, textAt } from '../../toolkit/cluster/objects.ts'

export interface LogsFlags extends ClusterFlags {
  readonly follow: boolean
  readonly since?: string
  readonly tail?: number
  readonly container?: string
  readonly server: boolean
}

/** Returns kubectl's exit code, or the first nonzero exit code if it runs several times. */
export async function clusterLogs(word: string, flags: LogsFlags): Promise<number> {
  const named = parseNamed(word)
  if (flags.server && named.kind.kind !== 'MCPServer')
    throw invalidConfig(
      '--server: applies only to an MCPServer, which has separate pods for the server and its proxy',
    )
  const cluster = await openCluster(flags)
  const withoutRight = new Set<string>()
  const all = await ownWorkloads(cluster, await readNamed(cluster, named), withoutRight)
  for (const right of withoutRight) printError(`no permission to ${right} in namespace ${cluster.namespace}`)
  const wanted = all.filter(({ kind }) => !flags.server || kind === 'StatefulSet')
  const label = `${named.kind.kind} ${cluster.namespace}/${named.name}`
  if (wanted.length === 0) {
    const why = withoutRight.size > 0 ? 'none that you have permission to read' : 'none'
    throw new GatehouseError('NOT_FOUND', {
      detail: `${label}: has no pods with logs (workloads: ${why})`,
    })
  }
  const options = optionsOf(flags)
  const run = (workload: Workload): Promise<number> => {
    const isTerminal = process.stdout.isTTY
    const { child, ended } = startKubectl(
      [
        'logs',
        ...kubectlFlags(flags, cluster.namespace),
        `--selector=${selectorOf(workload.object)}`,
        ...options,
        ...maxRequestsFlag(workload),
      ],
      ['ignore', isTerminal ? 'pipe' : 'inherit', 'inherit'],
    )
    child.stdout?.on('data', outputWriter(process.stdout))
    return ended
  }
  // Without --follow, kubectl runs for one workload at a time, so that lines from different pods are not mixed.
  const codes: number[] = []
  if (flags.follow) codes.push(...(await Promise.all(wanted.map(run))))
  else for (const workload of wanted) codes.push(await run(workload))
  return codes.find((code) => code !== exitCode.ok) ?? exitCode.ok
}

function optionsOf({ follow, since, tail = -1, container }: LogsFlags): readonly string[] {
  return [
    '--prefix',
    `--tail=${tail}`,
    ...(follow ? ['--follow'] : []),
    ...(since === undefined ? [] : [`--since=${since}`]),
    container === undefined ? '--all-containers' : `--container=${container}`,
  ]
}

/** By default, kubectl follows a maximum of five containers. */
function maxRequestsFlag({ pods, object }: Workload): readonly string[] {
  if (typeof pods === 'string') return []
  const containers = pods.flatMap((pod) =>
    ['containers', 'initContainers'].map((list) => lengthOf(pod, list)),
  )
  const count = containers.reduce((sum, length) => sum + length, 0)
  if (count === 0) printError(`${textAt(object, 'metadata', 'name') ?? ''} has no pods`)
  return [`--max-log-requests=${Math.max(5, count)}`]
}

function lengthOf(pod: Fields, list: string): number {
  return listAt(pod, 'spec', list).length
}
