/** A provider, a target that accepts only its tokens, and a proxy that signs in there. `walk` plays the browser. */
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createRemoteJWKSet, jwtVerify } from 'jose'
import { type ProxyInput, resolveProxyConfig } from '../../../runtime/config/index.ts'
import { silentLog } from '../../../runtime/net/index.ts'
import { runProxy } from '../../../runtime/proxy/index.ts'
import type { RunningCommand } from '../../../runtime/proxy/run/run.ts'
import { startOidcProvider, type TestProvider, walk } from '../authserver/oidc-provider.ts'
import { json, rpc, startUpstream, type Upstream } from './rig.ts'

export interface World {
  readonly idp: TestProvider
  readonly target: Upstream
  readonly resource: string
  /** Response to the next requests to the target, instead of the usual check. */
  response: { status: number; challenge: string } | undefined
  close(): Promise<void>
}

/** Starts a provider, and a target that accepts only its tokens and names it as MCP requires. */
export async function startWorld(options: Parameters<typeof startOidcProvider>[0] = {}): Promise<World> {
  let world: World | undefined
  const target = await startUpstream((seen, res) => {
    const base = `http://${seen.headers.host}`
    if (seen.url === '/.well-known/oauth-protected-resource/mcp') {
      res.setHeader('Content-Type', 'application/json')
      res.end(
        JSON.stringify({
          resource: `${base}/mcp`,
          authorization_servers: [idp.issuer],
          scopes_supported: ['read'],
        }),
      )
      return
    }
    const refuse = (status: number, challenge: string): void => {
      res.writeHead(status, { 'WWW-Authenticate': challenge }).end()
    }
    if (world?.response) return refuse(world.response.status, world.response.challenge)
    const challenge = `Basic realm="x", bearer resource_metadata="${base}/.well-known/oauth-protected-resource/mcp"`
    const check = async (): Promise<void> => {
      if (await isGood(seen.headers.authorization, `${base}/mcp`))
        res.end(`hello ${seen.headers.authorization?.slice(7)}`)
      else refuse(401, challenge)
    }
    void check()
  })
  const resource = `${target.url}/mcp`
  const idp = await startOidcProvider({
    resources: { [resource]: {}, [target.url]: {}, 'https://api.example': {} },
    ...options,
  })
  const keys = createRemoteJWKSet(new URL(`${idp.issuer}/jwks`))
  async function isGood(authorization: string | undefined, audience: string): Promise<boolean> {
    try {
      await jwtVerify(authorization?.slice(7) ?? '', keys, {
        issuer: idp.issuer,
        audience: [audience, target.url, 'https://api.example'],
      })
      return true
    } catch {
      return false
    }
  }
  world = {
    idp,
    target,
    resource,
    response: undefined,
    close: async () => void (await Promise.all([idp.close(), target.close()])),
  }
  return world
}

export interface Running {
  readonly proxy: RunningCommand
  /** Lines for the terminal. */
  readonly lines: readonly string[]
  /** Resolves with the login URL once it is printed. `nth` counts from 1. */
  loginUrl(nth?: number): Promise<string>
  /** Follows the login like a browser. */
  browse(nth?: number): Promise<Response>
  call(): Promise<Response>
}

export async function startLogin(
  world: World,
  input: ProxyInput,
  env: Record<string, string> = {},
): Promise<Running> {
  const config = resolveProxyConfig(
    'demo',
    { targetUri: world.target.url, remoteAuthCallbackPort: '0', remoteAuthSkipBrowser: true, ...input },
    { GATEHOUSE_STATE_DIR: mkdtempSync(join(tmpdir(), 'login-')), ...env },
  )
  const lines: string[] = []
  const urls: string[] = []
  let told = (): void => {}
  const proxy = await runProxy(config, {
    log: silentLog,
    notify(line) {
      lines.push(line)
      const url = /https?:\/\/\S+/.exec(line)?.[0]
      if (url !== undefined) urls.push(url)
      told()
    },
  })
  proxy.ready.catch(() => {})
  const loginUrl = async (nth = 1): Promise<string> => {
    while (urls.length < nth) await new Promise<void>((resolve) => (told = resolve))
    return urls[nth - 1] ?? ''
  }
  return {
    proxy,
    lines,
    loginUrl,
    async browse(nth = 1) {
      return fetch(await walk(await loginUrl(nth), 'http://localhost:'))
    },
    call: () => fetch(`${proxy.url}/mcp`, { method: 'POST', headers: json, body: rpc(1) }),
  }
}
