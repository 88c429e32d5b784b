/**
 * A tunnel that uses the system's ssh client: a reverse forward from a port on a server to the proxy.
 *
 * The ssh client's own configuration provides keys, known hosts and everything else. With BatchMode, the client never
 * prompts. The tunnel is up once ssh reports that the remote forward was accepted.
 */
import type { Environment } from '../../config/index.ts'
import { foreignEnvironment, runChild } from './child.ts'
import { keepRunning, type Tunnel, type TunnelEvents, type TunnelProvider } from './provider.ts'

export interface SshSettings {
  readonly host: string
  readonly user: string | undefined
  readonly port: number | undefined
  /** `[address:]port` on the server; with port 0, the server chooses. */
  readonly remoteBind: string
  readonly identityFile: string | undefined
  /** The public URL; default: http://host:port of the server. */
  readonly url: string | undefined
}

/**
 * A separate connection without prompts, used only for the forward. The connection ends if the forward is rejected or
 * the peer is lost.
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

/** Returns the ssh arguments for forwarding to a local port. */
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
            // The last line that ssh prints is the reason why it ended.
            const reason = cause instanceof Error ? cause.message : String(cause)
            throw new Error(last === '' ? reason : `${reason}: ${last}`, { cause })
          },
        )
      }
      const done = keepRunning(attempt, stop.signal, events.onDown)
      return {
        async close() {
          stop.abort(new Error('the tunnel is closing'))
          await done
        },
      }
    },
  }
}

/** Matches irrelevant lines in the output of `ssh -v`. */
const chatter = /^(?:debug|OpenSSH_|Authenticated to |Transferred: |Bytes per second: )/

function authorityOf(host: string): string {
  return host.includes(':') ? `[${host}]` : host
}

/** Returns the port on the server if the line reports that the forward was accepted. */
function forwardedPort(line: string, { remoteBind }: SshSettings): number | undefined {
  const allocated = /Allocated port (\d+) for remote forward/.exec(line)?.[1]
  if (allocated !== undefined) return Number(allocated)
  const fixed = Number(remoteBind.split(':').at(-1))
  return fixed !== 0 && /remote forward success for: listen/.test(line) ? fixed : undefined
}
