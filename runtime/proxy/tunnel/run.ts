/**
 * `proxy tunnel`: the proxy on a loopback port, with a provider that makes it reachable from outside.
 *
 * The whole pipeline stands in front of the target; without incoming authentication nothing is opened unless that is
 * asked for in so many words. The public name is added to the allowed hosts when it is known.
 * Source: spec document 1 (`proxy tunnel`).
 */
import { GatehouseError } from '../../../schemas/index.ts'
import type { ProxyConfig } from '../../config/index.ts'
import type { Authenticator } from '../../incoming/index.ts'
import { unbracket } from '../../net/index.ts'
import { incomingFor } from '../incoming-auth.ts'
import { type RunningCommand, type RunParts, runProxy } from '../run.ts'
import type { Tunnel, TunnelProvider } from './provider.ts'

export interface TunnelOptions extends RunParts {
  readonly config: ProxyConfig
  readonly provider: TunnelProvider
  /** Open the tunnel although nobody is asked for a token. */
  readonly insecureUnauthenticated: boolean
  /** Told about the public URL, again when it changes. */
  readonly onUrl: (url: string) => void
}

/** Resolves when the tunnel is up. Rejects when the first attempt fails, or the proxy cannot start. */
export async function runTunnel(options: TunnelOptions): Promise<RunningCommand> {
  const { config, provider, log, insecureUnauthenticated } = options
  if (!config.oidc && !insecureUnauthenticated) {
    throw new GatehouseError('INVALID_CONFIG', {
      detail:
        'a tunnel without --oidc-* flags lets the whole world use the target: protect it, or give --insecure-unauthenticated',
    })
  }
  const hosts = new Set<string>()
  let tunnel: Tunnel | undefined

  /** Opens the tunnel; resolves with its first URL. */
  function open(port: number): Promise<string> {
    return new Promise((resolve, reject) => {
      let up = false
      tunnel = provider.open(port, {
        log,
        onUp(url) {
          hosts.add(unbracket(new URL(url).hostname).toLowerCase())
          options.onUrl(url)
          up = true
          resolve(url)
        },
        onDown(error) {
          log.warn('the tunnel is down', { err: error })
          if (!up) reject(error instanceof Error ? error : new Error(String(error)))
        },
      })
    })
  }

  async function protectedBy({ port, url }: { port: number; url: string }): Promise<Authenticator> {
    const publicUrl = await open(port)
    const make = incomingFor({ ...config, resourceUrl: config.resourceUrl ?? `${publicUrl}/mcp` }, log)
    if (!make) throw new GatehouseError('INTERNAL')
    return make({ port, url })
  }

  let proxy: RunningCommand | undefined
  try {
    const running = await runProxy(
      { ...config, host: '127.0.0.1' },
      { ...options, allowedHosts: hosts, ...(config.oidc ? { incoming: protectedBy } : {}) },
    )
    proxy = running
    if (!config.oidc) await open(running.port)
    return {
      ...running,
      async close(end) {
        await tunnel?.close()
        await running.close(end)
      },
    }
  } catch (error) {
    await tunnel?.close()
    await proxy?.close({ graceMs: 0 })
    throw error
  }
}
