/**
 * A tunnel by the system's own ssh client: a reverse forward from a port of a server to the proxy.
 *
 * Keys, known hosts and everything else are the client's business (BatchMode: it never asks). The tunnel is up when ssh
 * says that the remote forward was accepted.
 */
import type { Environment } from '../../config/index.ts'
import { foreignEnvironment, runChild } from './child.ts'
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

/**
 * A connection of its own that asks nobody, carries nothing but the forward, gives up when that is refused, and notices
 * when the other end is gone.
 */
const fixedOptions = [
  'BatchMode=yes',
  'ConnectTimeout=15',
  'ControlMaster=no',
  'ControlPath=none',
  'ExitOnForwardFailure=yes',
  'ForwardAgent=no',
  'ForwardX11=no',
  'PermitLocalCommand=no',
  'ServerAliveInterval=15',
  'ServerAliveCountMax=3',
]

/** The arguments of ssh for a local port. */
function sshArguments(settings: SshSettings, localPort: number): string[] {
  const { host, user, port, remoteBind, identityFile } = settings
  return [
    '-N',
    '-T',
    '-v',
    ...fixedOptions.flatMap((option) => ['-o', option]),
    ...(identityFile === undefined ? [] : ['-o', 'IdentitiesOnly=yes', '-i', identityFile]),
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
        let last = ''
        const onLine = (line: string): void => {
          const remotePort = forwardedPort(line, settings)
          if (remotePort !== undefined) {
            events.onUp(settings.url ?? `http://${authorityOf(settings.host)}:${remotePort}`)
          } else if (!chatter.test(line)) {
            last = line
            events.log.info('ssh', { line })
          }
        }
        const args = sshArguments(settings, port)
        await runChild({ program, args, env: foreignEnvironment(env), signal, onLine }).catch(
          (cause: unknown) => {
            // What ssh said last is why it ended.
            const reason = cause instanceof Error ? cause.message : String(cause)
            throw new Error(last === '' ? reason : `${reason}: ${last}`, { cause })
          },
        )
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

/** What -v says beside what matters. */
const chatter = /^(?:debug|OpenSSH_|Authenticated to |Transferred: |Bytes per second: )/

function authorityOf(host: string): string {
  return host.includes(':') ? `[${host}]` : host
}

/** The port of the server, when the line says that the forward is accepted. */
function forwardedPort(line: string, { remoteBind }: SshSettings): number | undefined {
  const allocated = /Allocated port (\d+) for remote forward/.exec(line)?.[1]
  if (allocated !== undefined) return Number(allocated)
  const fixed = Number(remoteBind.split(':').at(-1))
  return fixed !== 0 && /remote forward success for: listen/.test(line) ? fixed : undefined
}
