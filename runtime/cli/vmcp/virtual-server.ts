import { logEvents, makeEvents, openServingCertificate } from '../../observe/index.ts'
import { startVmcp } from '../../vmcp/index.ts'
import { commandLog } from '../../toolkit/terminal/log.ts'
import { exitCode, print } from '../../toolkit/terminal/output.ts'
import { version } from '../../toolkit/terminal/self.ts'
import { withAuthServer } from './auth-server.ts'
import type { VirtualServerRequest } from '../proxy/proxy.ts'
import { stopSignal } from '../../toolkit/terminal/stop.ts'
import { readChecked, withSwap } from './serve.ts'

/** A proxy has one target, so callers cannot choose between several upstreams. */
const maxUpstreams = 1

/**
 * Serves a proxy's file as a virtual server with one backend, in the foreground until a signal arrives. Resolves with
 * the exit code.
 */
export async function serveAsVirtualServer(request: VirtualServerRequest): Promise<number> {
  const { env, host, port, allowedOrigins, authServerFile, lockKeeper } = request
  const { config } = await readChecked(
    {
      read: () => ({
        config: withSwap(request.config, authServerFile, env),
        checksum: undefined,
        excluded: [],
      }),
      authServerFile,
      maxUpstreams,
      env,
    },
    'all',
  )
  const log = commandLog({ level: request.debug ? 'debug' : 'info', name: 'proxy' })
  const events = makeEvents()
  const stopLog = logEvents(events, log)
  const certificate = request.tls && openServingCertificate(request.tls, events)
  const parts = { log, env, events, maxUpstreams, audit: config.audit }
  log.info('parsing every message, because the configuration requires more than forwarding', {
    sections: request.sections,
  })
  return withAuthServer(authServerFile, parts, async (authServer) => {
    const server = await startVmcp(config, {
      host,
      port,
      certificate,
      log,
      events,
      version,
      env,
      allowedOrigins,
      advertise: 'backends',
      lockKeeper,
      ...(authServer && { authServer }),
    })
    const stop = new AbortController()
    const stopped = stopSignal(stop)
    print(`Proxy started for server ${config.name} on port ${new URL(server.url).port}`)
    await stopped
    await server.close()
    return exitCode.ok
  }).finally(() => {
    certificate?.close()
    stopLog()
    log.flush()
  })
}
