/**
 * A tunnel by the system's own ssh client: a reverse forward from a port of a server to the proxy.
 *
 * Keys, known hosts and everything else are the client's business (BatchMode: it never asks). The tunnel is up when ssh
 * says that the remote forward was accepted.
 */
import type { Environment } from '../../config/index.ts'
import { runChild } from './child.ts'
import { keepRunning, type Tunnel, type TunnelEvents, type TunnelProvider } from './provider.ts'

export interface SshSettings {
  readonly host: string
  readonly user: string | undefined
  readonly port: number | undefined
  /** `[address:]port` on the server; port 0 lets it choose. */
  readonly remoteBind: string
  readonly identityFile: string | undefined
  /** The public URL; default: http://host:port of the server. */
  readonly url: string | undefined
}

/** The arguments of ssh for a local port. */
export function sshArguments(settings: SshSettings, localPort: number): string[] {
  const { host, user, port, remoteBind, identityFile } = settings
  return [
    '-N',
    '-T',
    '-v',
    ...[
      'BatchMode=yes',
      'ExitOnForwardFailure=yes',
      'ServerAliveInterval=15',
      'ServerAliveCountMax=3',
    ].flatMap((option) => ['-o', option]),
    ...(identityFile === undefined ? [] : ['-i', identityFile]),
    ...(port === undefined ? [] : ['-p', String(port)]),
    '-R',
    `${remoteBind}:127.0.0.1:${localPort}`,
    '--',
    user === undefined ? host : `${user}@${host}`,
  ]
}

export function sshProvider(settings: SshSettings, env: Environment, program = 'ssh'): TunnelProvider {
  return {
    open(port: number, events: TunnelEvents): Tunnel {
      const stop = new AbortController()
      const attempt = async (signal: AbortSignal): Promise<void> => {
        await runChild({
          program,
          args: sshArguments(settings, port),
          env,
          signal,
          onLine(line) {
            const remotePort = forwardedPort(line, settings)
            if (remotePort !== undefined) events.onUp(settings.url ?? `http://${settings.host}:${remotePort}`)
            // Debug lines are ssh's own; anything else is worth showing.
            else if (!line.startsWith('debug')) events.log.info('ssh', { line })
          },
        })
      }
      const done = keepRunning(attempt, stop.signal, events.onDown)
      return {
        async close() {
          stop.abort(new Error('the tunnel is ending'))
          await done
        },
      }
    },
  }
}

/** The port of the server, when the line says that the forward is accepted. */
function forwardedPort(line: string, { remoteBind }: SshSettings): number | undefined {
  const allocated = /Allocated port (\d+) for remote forward/.exec(line)?.[1]
  if (allocated !== undefined) return Number(allocated)
  const fixed = Number(remoteBind.split(':').at(-1))
  return fixed !== 0 && /remote forward success for: listen/.test(line) ? fixed : undefined
}
