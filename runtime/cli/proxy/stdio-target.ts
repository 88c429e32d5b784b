/**
 * `gatehouse proxy --config` for a server that speaks MCP on standard streams: served as streamable HTTP on `/mcp`, or over
 * HTTP+SSE (deprecated) on `/sse` when `proxyMode` says so.
 *
 * A program is run here, inside the container of a stdio server. A container that runs with its image's own entrypoint is
 * attached to, from a container beside the proxy. Neither protects anything: the proxy in front does.
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
import { version } from '../../toolkit/terminal/version.ts'
import { stopSignal } from '../../toolkit/terminal/stop.ts'
import { expand } from '../../toolkit/local/pods.ts'

const served: ReadonlySet<string> = new Set([
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
  if (flags.tlsCertFile !== undefined || flags.tlsKeyFile !== undefined)
    throw new GatehouseError('INVALID_CONFIG', {
      detail: '--tls-cert-file, --tls-key-file: are for the proxy in front of a stdio server',
    })
  const log = commandLog({ level: debug ? 'debug' : 'info', name: 'stdio-bridge' })
  const stopped = stopSignal(new AbortController())
  const common = {
    host: flags.host ?? file.host,
    port: Number(flags.port ?? file.port),
    mode: file.proxyMode ?? 'streamable-http',
    log,
    version,
    // What the server says about itself belongs to the container's log as it is.
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
  const beside = Object.keys(file).filter((field) => !served.has(field))
  if (beside.length === 0) return
  const detail = `${beside.join(', ')}: not served for a stdio target; put a proxy in front of it`
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
        'attach: the Kubernetes API is reached from a pod only; outside of a cluster name a program in stdio',
    })
  }
  const self = environment()[vmcpEnvironment.podName] ?? ''
  // Without it two proxies could not be told apart.
  if (self === '')
    throw new GatehouseError('INVALID_CONFIG', {
      detail: `attach: the variable ${vmcpEnvironment.podName} must name the pod that this runs in`,
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

/** The server gets the environment of the container, without what is ours. */
function childEnvironment(): Record<string, string> {
  const own: Record<string, string> = {}
  for (const [name, value] of Object.entries(environment())) {
    if (value !== undefined && !name.startsWith('GATEHOUSE_')) own[name] = value
  }
  return own
}
