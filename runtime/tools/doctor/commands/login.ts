/** The flags of `gatehouse doctor --login`: what goes together, and what a login does to the terminal. */
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
  /** False: --no-browser. */
  readonly browser: boolean
  /** Seconds. */
  readonly loginTimeout?: number
  readonly tokenFile?: string
  readonly redirectUri?: string
  readonly clientId?: string
  readonly register: boolean
}

const usualSeconds = 300

/** What does nothing without --login, and what does nothing with it. */
export function idleWithLogin({ login, clientId }: LoginFlags): readonly IdleRow[] {
  return [
    ['browser', login, 'is for --login'],
    ['loginTimeout', login, 'is for --login'],
    ['clientSecretFile', login && clientId !== undefined, 'is for --login with --client-id'],
    ['tokenFile', !login, 'not with --login, which gets a token of its own'],
    ['register', !login, 'not with --login, which registers its client'],
  ]
}

/** Throws INVALID_CONFIG for an address that a login cannot come back to. */
export function checkRedirectUri({ login, redirectUri }: LoginFlags): void {
  if (!login || redirectUri === undefined || isOurs(redirectUri)) return
  throw invalidConfig(
    '--redirect-uri: with --login it must be http on localhost, 127.0.0.1 or [::1], without query and fragment',
  )
}

/** An address that this machine can be called back at, as RFC 8252 has it. */
function isOurs(redirectUri: string): boolean {
  if (!URL.canParse(redirectUri)) return false
  const { protocol, hostname, search, hash, username, password } = new URL(redirectUri)
  return protocol === 'http:' && isLoopbackHost(hostname) && search + hash + username + password === ''
}

/** Ctrl-C ends the login and gives back what it made; the second one ends the process at once. */
export function loginOptions(
  { browser, loginTimeout = usualSeconds }: LoginFlags,
  clientSecret: string | undefined,
): SignInOptions {
  const stop = new AbortController()
  void stopSignal(stop)
  const program = readVariable(environment(), variables.browser)
  return {
    clientSecret,
    // The report is alone on standard output.
    notify: printError,
    ...(browser && { open: (address: string) => openBrowser(address, program) }),
    timeoutMs: loginTimeout * 1000,
    signal: stop.signal,
  }
}
