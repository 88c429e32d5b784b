/** Gets one access token for a client without a user, using the same discovery and token request as the proxy. */
import { GatehouseError } from '../../../schemas/index.ts'
import type { TargetAddress } from '../../config/index.ts'
import { makeDispatcher, type ProxyEnvironment, silentLog } from '../../net/index.ts'
import type { TokenSet } from '../../oauth/index.ts'
import { detect, type Located, makeLoginFetch } from '../../outgoing/index.ts'
import {
  locateForMachine,
  type MachineSettings,
  type MachineTokenParts,
  requestMachineToken,
} from '../login/machine-token.ts'

export interface MachineTokenOptions {
  readonly settings: MachineSettings
  /** The MCP endpoint. Not called if an issuer or a token endpoint is configured. */
  readonly target: TargetAddress
  /** Additional URLs that the operator configured. */
  readonly typed?: readonly string[]
  readonly ca?: string | undefined
  readonly proxy: ProxyEnvironment
  readonly signal: AbortSignal
}

export interface MachineToken {
  readonly tokens: TokenSet
  readonly located: Located
}

/**
 * Rejects with OAuthClientError, with BACKEND_UNREACHABLE when the target does not respond, with BACKEND_FAILED when
 * the target requires no token, or with the signal's reason.
 */
export async function getMachineToken(options: MachineTokenOptions): Promise<MachineToken> {
  const { settings, target, typed = [], ca, proxy, signal } = options
  const dispatcher = makeDispatcher({ origin: target.origin, ca, proxy })
  const { fetch, close } = await makeLoginFetch({
    target,
    typed: [settings.issuer, settings.tokenUrl, ...typed],
    ca,
    proxy,
  })
  const parts: MachineTokenParts = { settings, target, fetch, signal, now: Date.now, log: silentLog }
  try {
    const located = await locateServer()
    return { located, tokens: await requestMachineToken(located, parts) }
  } finally {
    await Promise.all([close(), dispatcher.destroy()])
  }

  async function locateServer(): Promise<Located> {
    if (settings.issuer !== undefined || settings.tokenUrl !== undefined)
      return locateForMachine(parts, target.origin, undefined)
    const found = await detect(target, dispatcher, fetch)
    signal.throwIfAborted()
    if (found.kind === 'unknown')
      throw new GatehouseError('BACKEND_UNREACHABLE', { detail: 'the server does not respond' })
    if (found.kind === 'open')
      throw new GatehouseError('BACKEND_FAILED', { detail: 'the server requires no token' })
    return locateForMachine(parts, found.url, found.challenge)
  }
}
