/**
 * Benchmark peer: a virtual server. Argument: JSON of VmcpPeerOptions. Prints its port as a JSON array. SIGTERM ends it
 * without lost requests.
 */
import { makeLog } from '../../../runtime/observe/index.ts'
import { startTestVmcp } from '../../helpers/vmcp/vmcp.ts'

export interface VmcpPeerOptions {
  readonly backends: Readonly<Record<string, string>>
  /** Whole top-level fields of the configuration. */
  readonly more?: Readonly<Record<string, unknown>>
  readonly sessionTtlMs?: number
  readonly maxSessions?: number
}

const {
  backends,
  more = {},
  sessionTtlMs,
  maxSessions,
} = JSON.parse(process.argv[2] ?? '{}') as VmcpPeerOptions
const vmcp = await startTestVmcp(backends, more, {
  log: makeLog({ level: 'warn', destination: '/dev/null' }),
  graceMs: 10_000,
  sessionTtlMs,
  maxSessions,
})
process.once('SIGTERM', () => void vmcp.close().then(() => process.exit(0)))
process.stdout.write(`[${new URL(vmcp.url).port}]\n`)
