/** When a login requests a bound token: what the target and the authorization server announce, and the mode. */
import t from 'tap'
import { resolveProxyConfig } from '../../../runtime/config/index.ts'
import { makeFetch } from '../../../runtime/net/index.ts'
import { tokenChallenge } from '../../../runtime/oauth/index.ts'
import { locate } from '../../../runtime/outgoing/index.ts'
import { startLoopback } from '../../helpers/loopback.ts'

const fetch = makeFetch()
t.teardown(() => fetch.close())

const [both, other] = [['ES256', 'EdDSA'], ['RS256']]
const rows: readonly {
  readonly mode: string
  readonly challenge?: string
  readonly document?: object
  readonly server?: readonly string[]
  readonly use: string | undefined | RegExp
}[] = [
  { mode: 'auto', use: 'demanded' },
  { mode: 'auto', server: both, use: 'demanded' },
  { mode: 'auto', server: other, use: undefined },
  { mode: 'auto', challenge: 'Bearer, DPoP', server: both, use: 'offered' },
  { mode: 'auto', challenge: 'Bearer, DPoP', use: 'demanded' },
  { mode: 'auto', challenge: 'Bearer, DPoP algs="RS256"', server: both, use: 'demanded' },
  { mode: 'auto', challenge: 'DPoP', use: 'required' },
  { mode: 'auto', challenge: 'DPoP', server: other, use: /authorization server does not accept/ },
  { mode: 'auto', challenge: 'DPoP algs="RS256"', server: both, use: /the target does not accept/ },
  { mode: 'auto', document: { dpop_signing_alg_values_supported: both }, server: both, use: 'offered' },
  { mode: 'auto', document: { dpop_signing_alg_values_supported: other }, server: both, use: 'demanded' },
  { mode: 'auto', document: { dpop_bound_access_tokens_required: true }, use: 'required' },
  {
    mode: 'auto',
    document: { dpop_bound_access_tokens_required: true, dpop_signing_alg_values_supported: other },
    use: /the target does not accept/,
  },
  { mode: 'required', use: 'required' },
  { mode: 'required', server: other, use: /authorization server does not accept/ },
  { mode: 'off', challenge: 'DPoP', server: both, use: undefined },
]

for (const { mode, challenge, document, server, use } of rows) {
  const name = JSON.stringify({ challenge, ...document, server })
  await t.test(`${mode} ${name}: ${String(use)}`, async (t) => {
    const peer = await startLoopback(({ path }) => {
      if (path.startsWith('/.well-known/oauth-protected-resource'))
        return { body: { resource: `${peer.url}/mcp`, authorization_servers: [peer.url], ...document } }
      const metadata = { issuer: peer.url, token_endpoint: `${peer.url}/token` }
      return { body: { ...metadata, ...(server && { dpop_signing_alg_values_supported: server }) } }
    })
    t.teardown(() => peer.close())
    const { remote } = resolveProxyConfig(
      'x',
      {
        targetUri: peer.url,
        remoteAuth: true,
        remoteAuthGrant: 'client_credentials',
        remoteAuthClientId: 'job',
        remoteAuthClientSecret: 's',
        remoteAuthDpop: mode,
      },
      {},
    )
    if (remote.kind !== 'oauth') throw new Error('no login')
    const located = locate({
      settings: remote,
      targetUri: peer.url,
      url: `${peer.url}/mcp`,
      challenge: tokenChallenge(challenge),
      fetch,
      signal: new AbortController().signal,
    })
    if (use instanceof RegExp) await t.rejects(located, { kind: 'protocol', message: use })
    else t.equal((await located).dpop, use)
  })
}
