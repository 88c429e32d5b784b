import type { VmcpConfig } from '../../config/index.ts'
import { silentLog } from '../../net/index.ts'
import { logEvents, makeEvents } from '../../observe/index.ts'
import { systemClock } from '../model/time/clock.ts'
import { withPrimaryProvider } from './embedded-auth.ts'
import { makeObservation } from './observation.ts'
import type { StartOptions, VmcpServer } from './options.ts'
import { Vmcp } from './server.ts'
import { checkStartWithLocks, requireKeeper, startParts, startWarnings } from './start-check.ts'

/**
 * Starts a virtual MCP server in this process. Rejects with INVALID_CONFIG, or with the system's error if the address
 * cannot be bound.
 */
export async function startVmcp(fileConfig: VmcpConfig, more: StartOptions = {}): Promise<VmcpServer> {
  const { env = {}, log = silentLog, version = '0.0.0', clock = systemClock, authServer } = more
  const options = authServer ? { ...more, upstreamTokens: authServer.upstreamTokens } : more
  const config = withPrimaryProvider(fileConfig, authServer?.config)
  const { excluded, recorder } = options
  requireKeeper(config, options.lockKeeper)
  const parts = startParts(options)
  await checkStartWithLocks(config, parts, excluded)
  // With several processes, the primary process logs the warnings.
  if (!more.worker) for (const warning of startWarnings(config, parts)) log.warn(warning)
  const events = options.events ?? makeEvents(clock.now)
  const stopLog = options.events ? () => {} : logEvents(events, log, clock)
  const observation = await makeObservation(config, {
    ...{ env, version, log, events, clock, recorder },
    worker: more.worker?.link,
  })
  let server: Vmcp | undefined
  try {
    server = new Vmcp(config, options, { observation, events, stopLog })
    await server.listen()
    return server
  } catch (error) {
    // Open connections to backends would keep the process alive.
    await (server?.close({ graceMs: 0 }) ?? observation.close())
    stopLog()
    throw error
  }
}
