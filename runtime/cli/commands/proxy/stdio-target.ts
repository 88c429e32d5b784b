/**
 * `gatehouse proxy --config` for a program that speaks MCP on standard streams: served as streamable HTTP on `/mcp`, or over
 * HTTP+SSE (deprecated) on `/sse` when `proxyMode` says so.
 *
 * This is what runs inside the container of a stdio server. It protects nothing: the proxy in front of it does.
 */
import { GatehouseError, type ProxyFile } from '../../../../schemas/index.ts'
import { environment, type ProxyInput } from '../../../config/index.ts'
import { startStdioBridge } from '../../../proxy/index.ts'
import { expand } from '../../dev/expand.ts'
import { commandLog } from '../../log.ts'
import { exitCode, print, printError } from '../../output.ts'
import { version } from '../../version.ts'
import { stopSignal } from '../../stop.ts'

const served: ReadonlySet<string> = new Set([
  'name',
  'stdio',
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
  const { stdio } = file
  const beside = Object.keys(file).filter((field) => !served.has(field))
  const violations = [
    ...(beside.length > 0
      ? [`${beside.join(', ')}: not served for a stdio target; put a proxy in front of it`]
      : []),
  ]
  if (!stdio || violations.length > 0)
    throw new GatehouseError('INVALID_CONFIG', { detail: violations.join('\n') })
  const log = commandLog({ level: debug ? 'debug' : 'info', name: 'stdio-bridge' })
  const stopped = stopSignal(new AbortController())
  const env = childEnvironment()
  const bridge = await startStdioBridge({
    command: [stdio.command, ...(stdio.args ?? [])].map((word) => expand(word, env)),
    env,
    cwd: process.cwd(),
    host: flags.host ?? file.host,
    port: Number(flags.port ?? file.port),
    mode: file.proxyMode ?? 'streamable-http',
    log,
    version,
    // What the server says about itself belongs to the container's log as it is.
    onLine: printError,
  })
  print(`Stdio server ${file.name} started on port ${bridge.port}`)
  const why = await Promise.race([bridge.failed, stopped.then(() => undefined)])
  await bridge.close()
  log.flush()
  if (why === undefined) return exitCode.ok
  printError(`Error: ${why}`)
  return exitCode.failed
}

/** The server gets the environment of the container, without what is ours. */
function childEnvironment(): Record<string, string> {
  const own: Record<string, string> = {}
  for (const [name, value] of Object.entries(environment())) {
    if (value !== undefined && !name.startsWith('GATEHOUSE_')) own[name] = value
  }
  return own
}
