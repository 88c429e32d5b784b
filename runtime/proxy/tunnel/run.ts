/**
 * `proxy tunnel`: runs the proxy on a loopback port, with a provider that makes it reachable from outside.
 *
 * Requests through the tunnel pass all checks of the proxy before they reach the target. Without incoming
 * authentication, the tunnel opens only with an explicit flag. Once the public URL is known, its host is added to the
 * allowed hosts. The URL is also the resource of the tokens, unless --resource-url sets a different resource.
 * Source: docs/reference/specification/proxy-command.md (`proxy tunnel`).
 */
import { GatehouseError, invalidConfig } from '../../../schemas/index.ts'
import type { ProxySettings } from '../../config/index.ts'
import type { Authenticator } from '../../incoming/index.ts'
import { failureOf, makeFetch, networkFailureText, unbracket } from '../../net/index.ts'
import { incomingFor } from '../run/incoming-auth.ts'
import { type RunningCommand, runProxy } from '../run/run.ts'
import type { RunParts } from '../run/run-parts.ts'
import type { ProxyAddress } from '../server/server.ts'
import { exchangeable, type ExchangeableAuthenticator } from './authenticator.ts'
import type { Tunnel, TunnelProvider } from './provider.ts'

export interface TunnelOptions extends RunParts {
  readonly config: ProxySettings
  readonly provider: TunnelProvider
  /** True to open the tunnel without authentication. */
  readonly insecureUnauthenticated: boolean
  /** True when the target authenticates the clients; checked before the tunnel opens. */
  readonly targetRequiresLogin?: boolean
  /** Called with the public URL, and again when it changes. */
  readonly onUrl: (url: string) => void
  /** Time limit for the first attempt. Default 60 s. */
  readonly upWithinMs?: number
}

/**
 * Throws INVALID_CONFIG if the tunnel would expose the target without authentication and no flag explicitly allows
 * this.
 */
export function refuseOpenTunnel(
  config: ProxySettings,
  {
    insecureUnauthenticated,
    targetRequiresLogin = false,
  }: Pick<TunnelOptions, 'insecureUnauthenticated' | 'targetRequiresLogin'>,
): void {
  if (targetRequiresLogin && (config.oidc || insecureUnauthenticated))
    throw invalidConfig(
      '--target-requires-login: cannot be combined with --oidc-* flags or --insecure-unauthenticated',
    )
  if (config.oidc || insecureUnauthenticated || targetRequiresLogin) return
  throw invalidConfig(
    'a tunnel without --oidc-* flags exposes the target to everyone; protect it, or set --target-requires-login or --insecure-unauthenticated',
  )
}

const checkTimeoutMs = 10_000

/** Rejects with INVALID_CONFIG unless the target responds with a login challenge to a request without credentials. */
async function checkTargetLogin({ target, remoteCa, proxyEnvironment }: ProxySettings): Promise<void> {
  const url = new URL(target.path ?? '/mcp', target.origin)
  const fetch = makeFetch({
    ca: remoteCa,
    proxy: proxyEnvironment,
    allowHttp: true,
    maxRedirects: 0,
    timeoutMs: checkTimeoutMs,
  })
  let found: string
  try {
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' }),
    })
    const challenge = response.headers.get('www-authenticate') ?? ''
    if (response.status === 401 && challenge.includes('resource_metadata=')) return
    found = `status ${response.status}`
  } catch (error) {
    found = networkFailureText(failureOf(error))
  } finally {
    await fetch.close()
  }
  throw invalidConfig(
    `--target-requires-login: ${url.href} must respond with 401 and a login challenge to requests without a token (found: ${found})`,
  )
}

/** Resolves when the tunnel is up. Rejects when the first attempt fails or the proxy cannot start. */
export async function runTunnel(options: TunnelOptions): Promise<RunningCommand> {
  const { config } = options
  refuseOpenTunnel(config, options)
  if (options.targetRequiresLogin) await checkTargetLogin(config)
  const opening = new Opening(options)
  let proxy: RunningCommand | undefined
  try {
    const running = await runProxy(
      { ...config, host: '127.0.0.1' },
      {
        ...options,
        allowedHosts: opening.hosts,
        ...(config.oidc ? { incoming: (address: ProxyAddress) => opening.protect(address) } : {}),
      },
    )
    proxy = running
    if (!config.oidc) await opening.open(running.port)
    return {
      ...running,
      async close(end) {
        await opening.close()
        await running.close(end)
      },
    }
  } catch (error) {
    await opening.close()
    await proxy?.close({ graceMs: 0 })
    throw error
  }
}

/** A tunnel that is starting, and the state that depends on its URL. */
class Opening {
  /** The proxy's host names. */
  readonly hosts = new Set<string>()
  readonly #options: TunnelOptions
  #tunnel: Tunnel | undefined
  #authenticator: ExchangeableAuthenticator | undefined
  #address: ProxyAddress | undefined
  #url: string | undefined

  constructor(options: TunnelOptions) {
    this.#options = options
  }

  /** Opens the tunnel. Resolves with the tunnel's first URL. */
  async open(port: number): Promise<string> {
    const { provider, log, signal, upWithinMs = 60_000 } = this.#options
    const { promise, resolve, reject } = Promise.withResolvers<string>()
    const late = (): void => reject(new Error(`the tunnel was not ready within ${upWithinMs / 1000}s`))
    const stop = (): void => reject(new Error('stopped while the tunnel was being opened'))
    const timer = setTimeout(late, upWithinMs)
    signal?.addEventListener('abort', stop, { once: true })
    if (signal?.aborted) stop()
    try {
      this.#tunnel = provider.open(port, {
        log,
        onUp: (url) => {
          this.#onUp(url)
          resolve(url)
        },
        onDown(error) {
          log.warn('the tunnel is down', { err: error })
          reject(error instanceof Error ? error : new Error(String(error)))
        },
      })
      return await promise
    } finally {
      clearTimeout(timer)
      signal?.removeEventListener('abort', stop)
    }
  }

  #onUp(url: string): void {
    if (url === this.#url) return
    this.#url = url
    this.hosts.add(unbracket(new URL(url).hostname).toLowerCase())
    if (this.#authenticator && this.#address && this.#options.config.resourceUrl === undefined) {
      this.#authenticator.exchange(this.#make(url, this.#address))
    }
    this.#options.onUrl(url)
  }

  /** Returns the incoming authentication, which depends on the public URL, and therefore on the tunnel. */
  async protect(address: ProxyAddress): Promise<Authenticator> {
    const authenticator = exchangeable(this.#make(await this.open(address.port), address))
    this.#address = address
    this.#authenticator = authenticator
    return authenticator
  }

  #make(publicUrl: string, address: ProxyAddress): Authenticator {
    const { config, log } = this.#options
    const resourceUrl = config.resourceUrl ?? new URL('/mcp', publicUrl).href
    const authenticator = incomingFor({ ...config, resourceUrl }, log)?.(address)
    if (!authenticator) throw new GatehouseError('INTERNAL')
    return authenticator
  }

  async close(): Promise<void> {
    await this.#tunnel?.close()
  }
}
