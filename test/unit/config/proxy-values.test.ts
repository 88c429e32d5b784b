/** The form of values of the proxy command's settings, and defaults that depend on another setting. */
import t from 'tap'
import { type ProxyInput, resolveProxyConfig } from '../../../runtime/config/index.ts'
import { proves } from '../../helpers/proves.ts'

proves(
  '1.command.server-name',
  '1.flag.remote-auth-bearer-token',
  '1.flag.remote-auth-scope-param-name',
  '1.flag.resource-url',
  '1.flag.token-exchange-subject-token-type',
)

const base: ProxyInput = { targetUri: 'http://127.0.0.1:9000' }
const resolve = (input: ProxyInput) => resolveProxyConfig('demo', { ...base, ...input }, {})

/** Returns the errors of an input, one per line; empty when it is accepted. */
function violations(input: ProxyInput): string[] {
  try {
    resolve(input)
    return []
  } catch (error) {
    return error instanceof Error ? error.message.split('\n') : ['?']
  }
}

await t.test('settings: the name has 1 to 253 printable characters', async (t) => {
  const named = (name: string) => () => resolveProxyConfig(name, base, {})
  for (const name of ['a', 'a'.repeat(253), '~!']) t.doesNotThrow(named(name), `${name.length} characters`)
  for (const name of ['', 'a'.repeat(254), 'a b', 'é', 'a\n'])
    t.throws(
      named(name),
      { message: /SERVER_NAME: must consist of 1 to 253 printable/ },
      JSON.stringify(name),
    )
})

await t.test('settings: an access token is exchanged unless another type is set', async (t) => {
  const urn = 'urn:ietf:params:oauth:token-type:'
  const typeOf = (given: ProxyInput) =>
    resolve({ tokenExchangeUrl: 'https://x.example/t', ...given }).exchange?.subjectTokenType
  t.equal(typeOf({}), `${urn}access_token`)
  t.equal(typeOf({ tokenExchangeSubjectTokenType: 'id_token' }), `${urn}id_token`)
  t.equal(typeOf({ tokenExchangeSubjectTokenType: `${urn}jwt` }), `${urn}jwt`)
  t.match(violations({ tokenExchangeUrl: 'https://x.example/t', tokenExchangeSubjectTokenType: 'saml2' }), [
    /--token-exchange-subject-token-type: must be access_token, id_token, jwt/,
  ])
})

await t.test('settings: bearer tokens, resource URLs and parameter names have a fixed form', async (t) => {
  for (const remoteAuthBearerToken of ['a b', ' a', 'a\n', 'é'])
    t.match(violations({ remoteAuthBearerToken }), [/--remote-auth-bearer-token: .*without spaces/])
  for (const resourceUrl of ['https://mcp.example/#f', 'ftp://mcp.example', '/mcp'])
    t.match(violations({ resourceUrl }), [/--resource-url: .*http or https URL without a fragment/])
  for (const name of [
    ...['response_type', 'client_id', 'redirect_uri', 'state', 'code_challenge'],
    ...['code_challenge_method', 'nonce'],
  ])
    t.match(violations({ remoteAuth: true, remoteAuthScopeParamName: name }), [
      `--remote-auth-scope-param-name: ${name} is reserved for the flow`,
    ])
  t.same(violations({ remoteAuth: true, remoteAuthScopeParamName: 'scope' }), [])
})
