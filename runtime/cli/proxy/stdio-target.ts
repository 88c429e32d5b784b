/**
 * Implements `gatehouse proxy --config` for a server that uses MCP over standard streams. The command serves streamable
 * HTTP on `/mcp`. When `proxyMode` is `sse`, the command serves the deprecated HTTP+SSE transport on `/sse` instead.
 *
 * With `stdio`, the program runs here, inside the stdio server's container. With `attach`, this process runs in a
 * container next to the proxy and attaches to a container that runs its image's own entrypoint. Neither mode
 * authenticates clients, because the proxy in front of this process authenticates them.
 */
import { GatehouseError, type ProxyFile } from '../../../schemas/index.ts'
import { environment, type ProxyInput, shutdownGraceMs, vmcpEnvironment } from '../../config/index.ts'
import { clusterApi } from '../../kube/index.ts'
import { logEvents, makeEvents, type RootLog } from '../../observe/index.ts'
import {
  type AttachedBridge,
  startAttachedBridge,
  startStdioBridge,
  type StdioBridge,
} from '../../proxy/index.ts'
import { commandLog } from '../../toolkit/terminal/log.ts'
import { exitCode, print, printError } from '../../toolkit/terminal/output.ts'
import { version } from '../../toolkit/terminal/self.ts'
import { stopSignal } from '../../toolkit/terminal/stop.ts'
import { expand } from '../../toolkit/local/pods.ts'

const supportedFields: ReadonlySet<string> = new Set([
  'name',
  'stdio',
  'attach',
  'transport',
  'proxyMode',
  'targetAddresses',
  'trustProxyHeaders',
  'identifyCallers',
  'host',
  'port',
  'logLevel',
])

export async function serveStdioTarget(file: ProxyFile, flags: ProxyInput, debug: boolean): Promise<number> {
  checkFile(file)
  if ([flags.tlsCertFile, flags.tlsKeyFile, flags.tlsClientCaFile].some((file) => file !== undefined))
    throw new GatehouseError('INVALID_CONFIG', {
      detail:
        '--tls-cert-file, --tls-key-file, --tls-client-ca-file: not supported for a stdio target; set them on the proxy in front of it',
    })
  const log = commandLog({ level: debug ? 'debug' : 'info', name: 'stdio-bridge' })
  const stopped = stopSignal(new AbortController())
  const common = {
    host: flags.host ?? file.host,
    port: Number(flags.port ?? file.port),
    mode: file.proxyMode ?? 'streamable-http',
    log,
    version,
    // The server's standard error is copied to the container's log unchanged.
    onLine: printError,
  } as const
  const bridge = await (file.attach
    ? attachTo(file.attach, { ...common, name: file.name })
    : runProgramOf(file, common))
  print(`Stdio server ${file.name} started on port ${bridge.port}`)
  const why = await Promise.race([bridge.failed, stopped.then(() => undefined)])
  if (why === undefined) await bridge.drained?.(shutdownGraceMs(environment()) ?? 0)
  await bridge.close()
  log.flush()
  if (why === undefined) return exitCode.ok
  printError(`Error: ${why}`)
  return exitCode.failed
}

function checkFile(file: ProxyFile): void {
  const unsupported = Object.keys(file).filter((field) => !supportedFields.has(field))
  if (unsupported.length === 0) return
  const detail = `${unsupported.join(', ')}: not supported for a stdio target; set them on a proxy in front of it`
  throw new GatehouseError('INVALID_CONFIG', { detail })
}

interface Common {
  readonly host: string
  readonly port: number
  readonly mode: 'streamable-http' | 'sse'
  readonly log: RootLog
  readonly version: string
  readonly onLine: (line: string) => void
}

type Bridge = StdioBridge & Partial<Pick<AttachedBridge, 'drained'>>

function runProgramOf({ stdio }: ProxyFile, common: Common): Promise<Bridge> {
  if (!stdio) throw new GatehouseError('INTERNAL')
  const env = childEnvironment()
  const command = [stdio.command, ...(stdio.args ?? [])].map((word) => expand(word, env))
  return startStdioBridge({ ...common, command, env, cwd: process.cwd() })
}

function attachTo(
  { namespace, pod, container, report, healthPort }: NonNullable<ProxyFile['attach']>,
  common: Common & { readonly name: string },
): Promise<Bridge> {
  const api = clusterApi(environment())
  if (!api) {
    throw new GatehouseError('INVALID_CONFIG', {
      detail:
        'attach: works only in a pod, because it needs the Kubernetes API; outside a cluster, configure a program under stdio',
    })
  }
  const self = environment()[vmcpEnvironment.podName] ?? ''
  // The pod name distinguishes proxies in different pods.
  if (self === '')
    throw new GatehouseError('INVALID_CONFIG', {
      detail: `attach: the variable ${vmcpEnvironment.podName} must contain the name of the pod that this process runs in`,
    })
  const events = makeEvents()
  logEvents(events, common.log)
  return startAttachedBridge({
    ...common,
    events,
    api,
    target: { namespace, pod, container },
    report,
    pod: self,
    health: healthPort === undefined ? undefined : { host: '0.0.0.0', port: healthPort },
  })
}

/** Returns the container's environment without Gatehouse's own variables. */
function childEnvironment(): Record<string, string> {
  const own: Record<string, string> = {}
  for (const [name, value] of Object.entries(environment())) {
    if (value !== undefined && !name.startsWith('GATEHOUSE_')) own[name] = value
  }
  return own
}
