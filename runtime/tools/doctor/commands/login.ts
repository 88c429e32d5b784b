/** The flags of `gatehouse doctor --login`. */
import { invalidConfig } from '../../../../schemas/index.ts'
import { environment, readVariable, variables } from '../../../config/index.ts'
import { isLoopbackHost } from '../../../net/index.ts'
import { openBrowser } from '../../../oauth/index.ts'
import { stopSignal } from '../../../toolkit/terminal/stop.ts'
import type { IdleRow } from '../../../toolkit/terminal/options.ts'
import { printError } from '../../../toolkit/terminal/output.ts'
import type { SignInOptions } from '../sign-in/state.ts'

export interface LoginFlags {
  readonly login: boolean
  readonly clientSecretFile?: string
  /** False for --no-browser. */
  readonly browser: boolean
  /** Seconds. */
  readonly loginTimeout?: number
  readonly tokenFile?: string
  readonly redirectUri?: string
  readonly clientId?: string
  readonly register: boolean
}

const usualSeconds = 300

/** Lists options that need --login, and options that exclude it. */
export function idleWithLogin({ login, clientId }: LoginFlags): readonly IdleRow[] {
  return [
    ['browser', login, 'has no effect without --login'],
    ['loginTimeout', login, 'has no effect without --login'],
    ['clientSecretFile', login && clientId !== undefined, 'has no effect without --login and --client-id'],
    ['tokenFile', !login, 'cannot be combined with --login, which obtains a token'],
    ['register', !login, 'cannot be combined with --login, which registers a client'],
  ]
}

/** Throws INVALID_CONFIG for a redirect URI at which this machine cannot receive the authorization response. */
export function checkRedirectUri({ login, redirectUri }: LoginFlags): void {
  if (!login || redirectUri === undefined || isOurs(redirectUri)) return
  throw invalidConfig(
    '--redirect-uri: with --login it must be http on localhost, 127.0.0.1 or [::1], without query and fragment',
  )
}

/** True for a loopback redirect URI (RFC 8252). */
function isOurs(redirectUri: string): boolean {
  if (!URL.canParse(redirectUri)) return false
  const { protocol, hostname, search, hash, username, password } = new URL(redirectUri)
  return protocol === 'http:' && isLoopbackHost(hostname) && search + hash + username + password === ''
}

/** The first Ctrl-C ends the login and cleans up. A second Ctrl-C exits immediately. */
export function loginOptions(
  { browser, loginTimeout = usualSeconds }: LoginFlags,
  clientSecret: string | undefined,
): SignInOptions {
  const stop = new AbortController()
  void stopSignal(stop)
  const program = readVariable(environment(), variables.browser)
  return {
    clientSecret,
    // Standard output contains only the report.
    notify: printError,
    ...(browser && { open: (address: string) => openBrowser(address, program) }),
    timeoutMs: loginTimeout * 1000,
    signal: stop.signal,
  }
}
