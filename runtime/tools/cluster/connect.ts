/** `gatehouse cluster connect` forwards a local port to a server with `kubectl port-forward`. */
import { GatehouseError } from '../../../schemas/index.ts'
import { exitCode, print } from '../../toolkit/terminal/output.ts'
import { kubectlFlags, startKubectl } from './kubectl.ts'
import { type ClusterFlags, openCluster, parseNamed, readNamed } from './reader.ts'
import { textAt } from '../../toolkit/cluster/objects.ts'

export interface ConnectFlags extends ClusterFlags {
  /** 0 selects a free port. */
  readonly port: number
}

/** `command` is the command prefix for the printed next step. */
export async function clusterConnect(word: string, flags: ConnectFlags, command: string): Promise<number> {
  const named = parseNamed(word.includes('/') ? word : `virtualmcpserver/${word}`)
  const cluster = await openCluster(flags)
  const url = textAt(await readNamed(cluster, named), 'status', 'url')
  const label = `${named.kind.kind} ${cluster.namespace}/${named.name}`
  if (url === undefined || !URL.canParse(url)) {
    const next = `${command} why -n ${cluster.namespace} ${named.kind.singular}/${named.name}`
    throw new GatehouseError('NOT_FOUND', {
      detail: `${label} has no address; run "${next}" to find the cause`,
    })
  }
  // The status of our servers contains the Service, with the scheme from spec.tls.
  const { protocol, hostname, pathname, port } = new URL(url)
  const [service = '', , isService] = hostname.split('.')
  if (isService !== 'svc')
    throw new GatehouseError('NOT_FOUND', {
      detail: `${label}: ${hostname} is not a Service in the cluster; clients connect to its URL directly`,
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
    print(describeConnection({ label, url: `${protocol}//127.0.0.1:${local}${pathname}` })),
  )
  const code = await ended
  return isInterrupted() ? exitCode.ok : code
}

/** kubectl prints its listening address once, then one line per connection. */
function whenForwarding(stdout: NodeJS.ReadableStream | null, onPort: (port: string) => void): void {
  let text = ''
  let isReported = false
  stdout?.setEncoding('utf8').on('data', (chunk: string) => {
    if (isReported) return
    text = (text + chunk).slice(-1_000)
    const [, port] = /^Forwarding from 127\.0\.0\.1:(\d+) ->/m.exec(text) ?? []
    if (port === undefined) return
    isReported = true
    onPort(port)
  })
}

function describeConnection({ label, url }: { readonly label: string; readonly url: string }): string {
  const note = url.startsWith('https:')
    ? [
        'The certificate is for names in the cluster: clients reject the connection unless they trust it for 127.0.0.1.',
      ]
    : []
  return [
    `${label} is available at ${url} until interrupted.`,
    `  gatehouse client add CLIENT --url ${url}`,
    ...note,
  ].join('\n')
}
