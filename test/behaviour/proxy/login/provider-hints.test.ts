/** `--remote-auth-provider`: the parameters that each provider's login adds, and the precedence of explicit flags. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import t, { type Test } from 'tap'
import { providerIds } from '../../../../runtime/oauth/index.ts'
import { runGatehouse } from '../../../helpers/gatehouse.ts'
import { startLogin, startWorld } from '../../../helpers/proxy/login-rig.ts'

/** A provider whose metadata does not announce PKCE, as some do not. */
function withoutPkce(req: IncomingMessage, res: ServerResponse): boolean {
  if (!req.url?.startsWith('/.well-known/') || req.headers['x-unchanged'] !== undefined) return false
  const respond = async (): Promise<void> => {
    const url = `http://${req.headers.host}${req.url}`
    const original = await fetch(url, { headers: { 'x-unchanged': 'yes' } })
    const metadata = (await original.json()) as Record<string, unknown>
    const changed = { ...metadata, code_challenge_methods_supported: undefined }
    res.writeHead(original.status, { 'content-type': 'application/json' }).end(JSON.stringify(changed))
  }
  void respond()
  return true
}

async function loginUrl(t: Test, input: Parameters<typeof startLogin>[1], intercept?: typeof withoutPkce) {
  const world = await startWorld(intercept ? { intercept } : {})
  t.teardown(() => world.close())
  const login = await startLogin(world, { remoteAuth: true, ...input })
  t.teardown(() => login.proxy.close({ graceMs: 0 }))
  return { params: new URL(await login.loginUrl()).searchParams, resource: world.resource }
}

await t.test('without a hint: the resource, and the scopes that the server requests', async (t) => {
  const { params, resource } = await loginUrl(t, {})
  t.equal(params.get('resource'), resource)
  for (const name of ['audience', 'access_type', 'prompt']) t.equal(params.get(name), null)
})

await t.test('google: offline access, requested each time', async (t) => {
  const { params } = await loginUrl(t, { remoteAuthProvider: 'google' })
  t.strictSame([params.get('access_type'), params.get('prompt')], ['offline', 'consent'])
})

await t.test('auth0: the resource as audience, and offline_access', async (t) => {
  const { params, resource } = await loginUrl(t, { remoteAuthProvider: 'auth0' })
  t.strictSame([params.get('resource'), params.get('audience')], [null, resource])
  t.match(params.get('scope'), /\boffline_access\b/)
})

await t.test('entra and cognito: PKCE is used although it is not announced', async (t) => {
  const entra = await loginUrl(t, { remoteAuthProvider: 'entra' }, withoutPkce)
  t.equal(entra.params.get('code_challenge_method'), 'S256')
  t.equal(entra.params.get('resource'), null)
  const cognito = await loginUrl(t, { remoteAuthProvider: 'cognito' }, withoutPkce)
  t.strictSame(
    [cognito.params.get('code_challenge_method'), cognito.params.get('resource')],
    ['S256', cognito.resource],
  )
})

await t.test('atlassian: adds its audience and consent parameters', async (t) => {
  const { params } = await loginUrl(t, { remoteAuthProvider: 'atlassian' })
  t.strictSame([params.get('audience'), params.get('prompt')], ['api.atlassian.com', 'consent'])
})

await t.test('explicit flags override the hint', async (t) => {
  const resource = 'https://api.example'
  const input = { remoteAuthProvider: 'entra', remoteAuthResource: resource, remoteAuthScopes: ['read'] }
  const { params } = await loginUrl(t, input)
  t.strictSame([params.get('resource'), params.get('scope')], [resource, 'read'])
})

await t.test('an unknown name is rejected with the list of known names', async (t) => {
  const args = [
    'proxy',
    '--target-uri',
    'http://127.0.0.1:1',
    '--remote-auth',
    '--remote-auth-provider',
    'x',
    'n',
  ]
  const { code, stderr } = await runGatehouse(args)
  t.equal(code, 2)
  t.match(stderr, `--remote-auth-provider: must be one of ${providerIds.join(', ')}`)
})
