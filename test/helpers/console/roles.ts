/** Consoles whose roles come from policies, and browsers of signed-in users. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import type { OidcOptions } from '../../../runtime/console/index.ts'
import { startOidcProvider } from '../authserver/oidc-provider.ts'
import { freePort, startGatehouse } from '../gatehouse.ts'
import { Browser } from './console.ts'
import { type LoginRigOptions, startLoginRig } from './login.ts'

export type RoleSettings = ReturnType<OidcOptions['roles']>

export const authz = (policies: readonly string[], more: object = {}): RoleSettings => ({
  authz: { policies: [...policies], entitiesJson: '[]', groupEntityType: 'ServiceGroup', ...more },
})

/** Name of the test servers. */
export const testServer = 'Console::"test-vmcp"'

export const granting = (action: string, group: string, console = testServer): string =>
  `permit(principal in ServiceGroup::"${group}", action == Action::"console:${action}", resource == ${console});`

export async function signedIn(t: Test, options: LoginRigOptions): Promise<Browser> {
  const rig = await startLoginRig(options)
  t.teardown(() => rig.close())
  return rig.signIn()
}

export const rolesOf = async (browser: Browser): Promise<unknown> => (await browser.api('me')).json['roles']

/** Starts `gatehouse vmcp serve` with a console of this name, from a file that tests can rewrite. */
export async function serveWithPolicies(
  t: Test,
  {
    policies,
    groups,
    telemetry,
  }: { policies: readonly string[]; groups: readonly string[]; telemetry?: object },
) {
  const port = await freePort()
  const home = `http://127.0.0.1:${port}`
  const provider = await startOidcProvider({
    clients: [
      { client_id: 'console', client_secret: 'shown to nobody', redirect_uris: [`${home}/callback`] },
    ],
    claims: { groups },
    configuration: { claims: { openid: ['sub', 'groups'] } },
  })
  t.teardown(() => provider.close())
  const file = join(t.testdir(), 'vmcp.json')
  const write = (policies: readonly string[], more: object = {}): void =>
    writeFileSync(
      file,
      JSON.stringify({
        name: 'team',
        groupRef: 'g',
        incomingAuth: { type: 'anonymous' },
        outgoingAuth: { source: 'inline' },
        aggregation: {},
        ...(telemetry ? { telemetry } : {}),
        console: {
          enabled: true,
          port,
          publicUrl: home,
          auth: { type: 'oidc', issuer: provider.issuer, clientId: 'console', scopes: ['openid'] },
          authz: { policies },
        },
        ...more,
      }),
    )
  write(policies)
  const env = { ...process.env, GATEHOUSE_CONSOLE_CLIENT_SECRET: 'shown to nobody' }
  const running = startGatehouse(['vmcp', 'serve', '--config', file, '--port', '0'], env)
  t.teardown(() => running.interrupt())
  await running.waitFor(/console listening/)
  const browser = new Browser(`${home}/`)
  await browser.go('login?to=/')
  const origin = (): string => /"url":"(http:[^"]+)\/mcp"/.exec(running.output())?.[1] ?? ''
  return {
    running,
    browser,
    write,
    get: async (path: string): Promise<string> => (await fetch(`${origin()}${path}`)).text(),
  }
}
