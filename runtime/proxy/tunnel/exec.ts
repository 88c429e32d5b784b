/**
 * A tunnel that an external program provides. The program accepts the proxy's address as an argument, and prints the
 * public URL.
 *
 * The arguments are a list that no shell parses. The token from the environment is passed in the configured variable,
 * and never as an argument.
 */
import type { Environment } from '../../config/index.ts'
import type { Secret } from '../../observe/index.ts'
import { foreignEnvironment, runChild } from './child.ts'
import { keepRunning, type Tunnel, type TunnelEvents, type TunnelProvider } from './provider.ts'

export interface ExecSettings {
  /** The program and its arguments; `{target}` becomes the proxy's URL, and `{port}` its port. */
  readonly command: readonly string[]
  /**
   * The public URL is the first group, or the whole match. The program's standard output and standard error are
   * searched.
   */
  readonly urlPattern: RegExp
  /** The environment variable that passes the token to the program. */
  readonly authTokenEnv: string | undefined
}

const longestLine = 4_096

export function execProvider(
  settings: ExecSettings,
  env: Environment,
  token: Secret | undefined,
): TunnelProvider {
  const given =
    settings.authTokenEnv !== undefined && token ? { [settings.authTokenEnv]: token.reveal() } : {}
  const childEnv = { ...foreignEnvironment(env), ...given }
  return {
    open(port: number, events: TunnelEvents): Tunnel {
      const stop = new AbortController()
      const [program = '', ...args] = settings.command.map((part) =>
        part.replaceAll('{target}', `http://127.0.0.1:${port}`).replaceAll('{port}', String(port)),
      )
      const attempt = (signal: AbortSignal): Promise<void> =>
        runChild({
          program,
          args,
          env: childEnv,
          signal,
          onLine(line, stream) {
            const text = line.slice(0, longestLine)
            const match = settings.urlPattern.exec(text)
            const url = match?.[1] ?? match?.[0]
            if (url !== undefined && /^https?:\/\//.test(url) && URL.canParse(url)) events.onUp(url)
            else events.log.debug('tunnel program', { line: text, stream })
          },
        })
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
