/** `gatehouse cluster connect`: a port of this machine that leads to one server, as `kubectl port-forward` makes it. */
import { GatehouseError } from '../../../schemas/index.ts'
import { exitCode, print } from '../../toolkit/terminal/output.ts'
import { kubectlFlags, startKubectl } from './kubectl.ts'
import { type ClusterFlags, openCluster, parseNamed, readNamed } from './reader.ts'
import { textAt } from '../../toolkit/cluster/objects.ts'

export interface ConnectFlags extends ClusterFlags {
  /** 0: a free one. */
  readonly port: number
}

/** `command`: as the commands of a cluster are called here, for the next step. */
export async function clusterConnect(word: string, flags: ConnectFlags, command: string): Promise<number> {
  const named = parseNamed(word.includes('/') ? word : `virtualmcpserver/${word}`)
  const cluster = await openCluster(flags)
  const url = textAt(await readNamed(cluster, named), 'status', 'url')
  const label = `${named.kind.kind} ${cluster.namespace}/${named.name}`
  if (url === undefined || !URL.canParse(url)) {
    const next = `${command} why -n ${cluster.namespace} ${named.kind.singular}/${named.name}`
    throw new GatehouseError('NOT_FOUND', { detail: `${label} has no address: "${next}" says why` })
  }
  // Of a server of ours the status names the Service, with the scheme that spec.tls makes it.
  const { protocol, hostname, pathname, port } = new URL(url)
  const [service = '', , isService] = hostname.split('.')
  if (isService !== 'svc')
    throw new GatehouseError('NOT_FOUND', {
      detail: `${label}: ${hostname} is no Service of the cluster; clients reach it by its URL`,
    })
  const ports = `${flags.port === 0 ? '' : flags.port}:${port || (protocol === 'https:' ? '443' : '80')}`
  const { child, ended, isInterrupted } = startKubectl(
    [
      'port-forward',
      ...kubectlFlags(flags, cluster.namespace),
      '--address=127.0.0.1',
      `service/${service}`,
      ports,
    ],
    ['ignore', 'pipe', 'inherit'],
  )
  whenForwarding(child.stdout, (local) =>
    print(toldLines({ label, url: `${protocol}//127.0.0.1:${local}${pathname}` })),
  )
  const code = await ended
  return isInterrupted() ? exitCode.ok : code
}

/** kubectl says once where it listens, and then of each connection that there is one. */
function whenForwarding(stdout: NodeJS.ReadableStream | null, told: (port: string) => void): void {
  let text = ''
  let isTold = false
  stdout?.setEncoding('utf8').on('data', (chunk: string) => {
    if (isTold) return
    text = (text + chunk).slice(-1_000)
    const [, port] = /^Forwarding from 127\.0\.0\.1:(\d+) ->/m.exec(text) ?? []
    if (port === undefined) return
    isTold = true
    told(port)
  })
}

function toldLines({ label, url }: { readonly label: string; readonly url: string }): string {
  const note = url.startsWith('https:')
    ? [
        'The certificate is of the names in the cluster: a client must trust it for 127.0.0.1, or it refuses the connection.',
      ]
    : []
  return [
    `${label} is at ${url} until this is interrupted.`,
    `  gatehouse client add CLIENT --url ${url}`,
    ...note,
  ].join('\n')
}
