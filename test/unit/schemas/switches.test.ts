/** Variables that enable or disable something accept the same words, and no others. */
import { globSync, mkdtempSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { parseVmcpConfig, resolveProxyConfig, vmcpEnvironment } from '../../../runtime/config/index.ts'
import { authServerEnvironment, parseAuthServerConfig } from '../../../runtime/config/authserver/file.ts'
import { makeSecretsProvider } from '../../../runtime/config/common/secrets.ts'
import { checkStart } from '../../../runtime/vmcp/server/start-check.ts'
import { isSwitchedOn, switchViolation } from '../../../schemas/index.ts'

t.test('switch: the usual words, in any case', async (t) => {
  for (const word of ['true', '1', 'yes', 'on', 'TRUE', 'On', ' yes ']) {
    t.equal(isSwitchedOn({ X: word }, 'X'), true, word)
  }
  for (const word of ['false', '0', 'no', 'off', 'FALSE', 'Off']) {
    t.equal(isSwitchedOn({ X: word }, 'X', { fallback: true }), false, word)
  }
  for (const env of [{}, { X: '' }, { X: ' ' }, { X: undefined }]) {
    t.equal(isSwitchedOn(env, 'X'), false)
    t.equal(isSwitchedOn(env, 'X', { fallback: true }), true)
  }
})

t.test('switch: any other word is rejected, named and shortened', async (t) => {
  for (const word of ['enabled', '2', 'tru', 'null', 'ja', '-1']) {
    t.equal(
      switchViolation({ X: word }, 'X'),
      `X: must be true or false (or 1, 0, yes, no, on, off), found "${word}"`,
    )
    t.throws(() => isSwitchedOn({ X: word }, 'X'), { code: 'INVALID_CONFIG' })
  }
  t.match(switchViolation({ X: 'z'.repeat(1000) }, 'X'), /"z{40}…"$/)
})

const authServer = `
issuer: https://mcp.example.com
allowedAudiences: [https://mcp.example.com]
upstreamProviders: [{ name: corp, type: oidc, oidcConfig: { issuerUrl: https://a.example.com, clientId: x } }]
`

t.test(
  'switch: every switch of the authorization server accepts these words, and all errors are in one message',
  async (t) => {
    const { consent, registration, confidentialClients, cimdLoopback } = authServerEnvironment
    for (const word of ['false', '0', 'no', 'off']) {
      const off = parseAuthServerConfig(authServer, { [consent]: word, [registration]: word })
      t.match(off, { consent: false, registration: { enabled: false } }, word)
    }
    for (const word of ['true', '1', 'yes', 'on']) {
      t.match(parseAuthServerConfig(authServer, { [consent]: word, [confidentialClients]: word }), {
        consent: true,
        registration: { enabled: true, confidentialClients: true },
      })
    }
    const names = [consent, registration, confidentialClients, cimdLoopback]
    try {
      parseAuthServerConfig(authServer, Object.fromEntries(names.map((name) => [name, 'maybe'])))
      t.fail('it was accepted')
    } catch (error) {
      for (const name of names) t.match(String(error), `${name}: must be true or false`)
    }
  },
)

t.test('switch: the switches of the proxy and the virtual server accept these words', async (t) => {
  const proxy = (env: Record<string, string>) =>
    resolveProxyConfig('x', { targetUri: 'http://127.0.0.1:1' }, env)
  t.equal(proxy({ GATEHOUSE_DEBUG: 'on' }).debug, true)
  t.throws(() => proxy({ GATEHOUSE_DEBUG: 'verbose' }), { message: /GATEHOUSE_DEBUG: must be true or false/ })
  const secrets = {
    GATEHOUSE_SECRETS_PROVIDER: 'file',
    GATEHOUSE_SECRETS_DIR: mkdtempSync(join(tmpdir(), 'secrets-')),
    GATEHOUSE_SECRET_A: 'value',
  }
  const fallback = (word: string) => makeSecretsProvider({ ...secrets, GATEHOUSE_DISABLE_ENV_FALLBACK: word })
  t.equal(fallback('off').find('A').reveal(), 'value')
  t.throws(() => fallback('on').find('A'))
  t.throws(() => fallback('nein'), { code: 'INVALID_CONFIG' })

  const text =
    'name: x\ngroupRef: g\naggregation: {}\nincomingAuth: { type: anonymous }\noutgoingAuth: { source: inline }\n'
  const { enableObo, debug, telemetryToolArguments } = vmcpEnvironment
  const config = parseVmcpConfig(text)
  checkStart(config, { env: { [enableObo]: 'yes', [debug]: '0', [telemetryToolArguments]: 'on' } })
  t.throws(
    () => checkStart(config, { env: { [enableObo]: 'y', [debug]: 'd', [telemetryToolArguments]: 't' } }),
    {
      message:
        /GATEHOUSE_ENABLE_OBO: must[^]*GATEHOUSE_DEBUG: must[^]*GATEHOUSE_TELEMETRY_TOOL_ARGUMENTS: must/,
    },
  )
})

t.test('switch: no source file compares a variable with such a word itself', async (t) => {
  const own = /\benv(?:ironment)?(?:\[|\.)[^\n]*(?:===|!==) '(?:true|false|1|0|yes|no|on|off)'/
  const files = globSync('{runtime,hooks,schemas}/**/*.ts', { exclude: ['**/generated/**'] })
  t.ok(files.length > 100)
  t.same(
    files.filter((file) => own.test(readFileSync(file, 'utf8'))),
    [],
  )
})
