/**
 * The proxy's login, reloaded from a state directory. The test controls the responses of the token endpoint and the
 * clock.
 */
import { mkdtempSync, readdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type ProxyInput, resolveProxyConfig } from '../../../runtime/config/index.ts'
import { makeDispatcher, makeFetch, silentLog } from '../../../runtime/net/index.ts'
import { TargetLogin } from '../../../runtime/outgoing/login/login.ts'
import { type KeptLogin, persistedName } from '../../../runtime/outgoing/login/kept-login.ts'
import { persistInDirectory } from '../../../runtime/outgoing/login/persisted.ts'
import { type PeerResponse, type SeenRequest, startLoopback } from '../loopback.ts'

const target = {
  origin: 'http://127.0.0.1:1',
  authority: '127.0.0.1:1',
  protocol: 'http:',
  query: '',
  loopback: true,
} as const

export interface KeptLogins {
  readonly dir: string
  /** Another process with the same state directory. */
  open(): TargetLogin
  /** Moves the clock. */
  pass(ms: number): void
  /** Number of requests to the token endpoint. */
  asked(): number
  /** True when a login is in the state directory. */
  isKept(): boolean
  close(): Promise<void>
}

export interface KeptLoginOptions {
  readonly input?: ProxyInput
  /** Default: expires in an hour. */
  readonly tokens?: Partial<KeptLogin['tokens']>
  /** State directory that already contains the login. Default: a new one. */
  readonly dir?: string
}

export async function startKeptLogins(
  respond: (seen: SeenRequest) => PeerResponse,
  { input = {}, tokens = {}, dir: known }: KeptLoginOptions = {},
): Promise<KeptLogins> {
  let nowMs = 1_800_000_000_000
  const now = (): number => nowMs
  const dir = known ?? mkdtempSync(join(tmpdir(), 'kept-login-'))
  const peer = await startLoopback(respond)
  const fetch = makeFetch({ maxRedirects: 0 })
  const dispatcher = makeDispatcher()
  const { remote: settings } = resolveProxyConfig(
    'x',
    { targetUri: target.origin, remoteAuth: true, ...input },
    {},
  )
  if (settings.kind !== 'oauth') throw new Error('there is no login')
  const persisted = persistInDirectory(dir, undefined, silentLog)
  const name = persistedName(target, settings)
  const state: KeptLogin = {
    located: {
      server: { issuer: peer.url, token_endpoint: `${peer.url}/token` },
      issuer: peer.url,
      resource: undefined,
      scopes: [],
    },
    client: { clientId: 'c' },
    tokens: {
      accessToken: 'at-0',
      tokenType: 'bearer',
      refreshToken: 'rt-0',
      expiresAt: nowMs + 3_600_000,
      ...tokens,
    },
  }
  if (known === undefined) persisted.write(name, state)
  const stop = new AbortController()
  const logins: TargetLogin[] = []
  return {
    dir,
    open() {
      const login = new TargetLogin({
        settings,
        target,
        dispatcher,
        fetch,
        log: silentLog,
        notify: () => {},
        open: async () => false,
        persisted: persistInDirectory(dir, undefined, silentLog),
        needIdToken: false,
        signal: stop.signal,
        now,
      })
      logins.push(login)
      return login
    },
    pass: (ms) => void (nowMs += ms),
    asked: () => peer.seen.filter(({ path }) => path === '/token').length,
    isKept: () => readdirSync(dir).some((file) => file.endsWith('.login')),
    async close() {
      stop.abort()
      for (const login of logins) login.close()
      await Promise.all([fetch.close(), dispatcher.destroy(), peer.close()])
    },
  }
}
