/**
 * `gatehouse catalogue serve` serves published servers in the form of the MCP registry API.
 *
 * `serve` runs in the foreground until SIGINT or SIGTERM, and applies changes to its configuration file without a
 * restart. When a changed file has errors, `serve` reports the errors and keeps the running configuration.
 */
import type { Command } from 'commander'
import { startCatalogue } from '../../catalogue/index.ts'
import {
  environment,
  loadCatalogueConfig,
  type ServeFlags,
  serveSettings,
  shutdownGraceMs,
  watchFile,
} from '../../config/index.ts'
import { logEvents, makeEvents, openServingCertificate } from '../../observe/index.ts'
import { addLogFlags, commandLog } from '../../toolkit/terminal/log.ts'
import { bindError } from '../../toolkit/terminal/options.ts'
import { exitCode } from '../../toolkit/terminal/output.ts'
import { stopSignal } from '../../toolkit/terminal/stop.ts'

interface ServeOptions extends Pick<ServeFlags, 'host' | 'port' | 'tlsCertFile' | 'tlsKeyFile'> {
  readonly config: string
}

export function addCatalogueCommand(program: Command): void {
  const catalogue = program
    .command('catalogue')
    .summary('serve a catalogue of published servers')
    .description('Runs catalogues, which list published servers for MCP clients and for gatehouse add.')
  addLogFlags(catalogue.command('serve'))
    .summary('run a catalogue')
    .description(
      'Serves the servers in a configuration file as a read-only MCP registry (API v0.1). Runs in the foreground until it receives a signal.',
    )
    .requiredOption(
      '-c, --config <file>',
      'configuration file; changes take effect without a restart (required)',
    )
    .option('--host <address>', 'address to bind', '127.0.0.1')
    .option('--port <number>', 'port to bind; 0 lets the system choose', '4484')
    .option(
      '--tls-cert-file <file>',
      'serve HTTPS with this certificate chain, PEM; reloaded when it changes',
    )
    .option('--tls-key-file <file>', 'private key of the certificate, PEM, without a passphrase')
    .addHelpText(
      'after',
      '\nExample:\n  gatehouse catalogue serve --config catalogue.yaml\n' +
        '\nExit codes: 0 stopped by a signal, 1 failed, 2 invalid usage or configuration.',
    )
    .action(async (options: ServeOptions) => {
      process.exitCode = await serve(options)
    })
}

async function serve({ config: path, ...flags }: ServeOptions): Promise<number> {
  const env = environment()
  const graceMs = shutdownGraceMs(env)
  const { host, port, tls } = serveSettings({ ...flags, allowedOrigins: [] }, env)
  const config = loadCatalogueConfig(path)
  const log = commandLog({ level: 'info', name: 'catalogue' })
  const events = makeEvents()
  const stopLog = logEvents(events, log)
  const certificate = tls && openServingCertificate(tls, events)
  try {
    const catalogue = await startCatalogue(config, { host, port, env, log, certificate }).catch(
      (error: unknown) => {
        throw bindError(error, 'the catalogue')
      },
    )
    const stopWatching = watchFile(path, () => {
      try {
        catalogue.reload(loadCatalogueConfig(path))
      } catch (err) {
        log.error('the changed configuration was rejected; the previous one stays active', { err })
      }
    })
    await stopSignal(new AbortController())
    log.info('stopping')
    stopWatching()
    await catalogue.close({ graceMs })
    return exitCode.ok
  } finally {
    certificate?.close()
    stopLog()
    log.flush()
  }
}
