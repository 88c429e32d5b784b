/** A console with a login at a real OpenID provider, and browsers of users in given groups. */
import type { Approver, OidcOptions } from '../../../runtime/console/index.ts'
import { type Log, makeFetch } from '../../../runtime/net/index.ts'
import {
  startOidcProvider,
  type TestProvider,
  type TestProviderOptions,
} from '../authserver/oidc-provider.ts'
import { freePort } from '../gatehouse.ts'
import { Browser, startTestConsole, type TestConsole } from './console.ts'

export interface LoginRig {
  readonly console: TestConsole
  readonly provider: TestProvider
  /** A browser that has signed in. */
  signIn(): Promise<Browser>
  close(): Promise<void>
}

export interface LoginRigOptions {
  readonly groups?: readonly string[]
  readonly backends?: Readonly<Record<string, string>>
  readonly more?: Readonly<Record<string, unknown>>
  readonly provider?: TestProviderOptions
  readonly now?: () => number
  readonly approver?: Approver
  /** True if ID tokens contain the time of the login without a request for it. Default: true. */
  readonly authTime?: boolean
  /** Default: the groups viewers, operators and auditors have the roles with these names. */
  readonly roles?: OidcOptions['roles']
  /** Client secret that the console sends. Default: the correct one. */
  readonly clientSecret?: string
  /** Replaces the responses of the provider's token endpoint. */
  readonly tokenResponse?: () => Response
  readonly log?: Log
  readonly payloads?: 'none' | 'failures' | 'all'
}

export async function startLoginRig(options: LoginRigOptions = {}): Promise<LoginRig> {
  const port = await freePort()
  const send = makeFetch({ guard: 'any' })
  const { tokenResponse } = options
  const home = `http://127.0.0.1:${port}`
  const provider = await startOidcProvider({
    clients: [
      {
        client_id: 'console',
        client_secret: 'planted-client-secret',
        redirect_uris: [`${home}/callback`],
        require_auth_time: options.authTime ?? true,
      },
    ],
    claims: { groups: options.groups ?? [], name: 'Alice' },
    configuration: { claims: { openid: ['sub', 'groups'], profile: ['name'] } },
    ...options.provider,
  })
  const role = (name: 'viewer' | 'operator' | 'auditor') => ({
    role: name,
    claim: 'groups',
    values: [`${name}s`],
  })
  const byGroups = { roles: [role('viewer'), role('operator'), role('auditor')] }
  const console = await startTestConsole(options.backends ?? {}, options.more, {
    ...(options.payloads ? { payloads: options.payloads } : {}),
    ...(options.log ? { log: options.log } : {}),
    ...(options.approver ? { approver: options.approver } : {}),
    login: {
      port,
      access: {
        type: 'oidc',
        issuer: provider.issuer,
        clientId: 'console',
        clientSecret: () => options.clientSecret ?? 'planted-client-secret',
        scopes: ['openid', 'profile'],
        roles: options.roles ?? (() => byGroups),
        fetch: tokenResponse
          ? async (url, init) => (init?.method === 'POST' ? tokenResponse() : send(url, init))
          : send,
        ...(options.now ? { now: options.now } : {}),
      },
    },
  })
  return {
    console,
    provider,
    async signIn() {
      const browser = new Browser(console.url)
      await browser.go('login?to=/calls')
      return browser
    },
    async close() {
      await console.close()
      await provider.close()
    },
  }
}
