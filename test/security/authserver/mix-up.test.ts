/**
 * Mix-up between upstreams (RFC 9700 section 4.4): a dishonest upstream redirects the browser to another one, whose
 * code would then be sent to the first. Plain OAuth providers announce nothing, so this file tests the two defenses
 * that need no announcement: a separate redirect URI for each provider, and an issuer that is known to belong to
 * another provider.
 */
import t, { type Test } from 'tap'
import {
  corp,
  login,
  registerClient,
  type Rig,
  startAuthServer,
} from '../../helpers/authserver/authserver.ts'
import { upstream } from '../../helpers/authserver/oauth2-peer.ts'
import { type PeerResponse, type Loopback, startLoopback } from '../../helpers/loopback.ts'

interface Setup {
  readonly rig: Rig
  readonly evil: Loopback
  readonly clientId: string
  /** Parameters that the dishonest provider puts into the redirect. */
  back: (redirectUri: string, state: string) => string
}

/** `evil` identifies the user; `corp` is honest. `own`: each has its own redirect URI. */
async function start(t: Test, { own }: { readonly own: boolean }): Promise<Setup> {
  const evil = await startLoopback(({ path, query }): PeerResponse => {
    if (path === '/token') return { body: { access_token: 'at', token_type: 'bearer', expires_in: 3600 } }
    const location = self.back(query.get('redirect_uri') ?? '', query.get('state') ?? '')
    return { status: 302, headers: { location } }
  })
  t.teardown(() => evil.close())
  const rig = await startAuthServer(t, {
    upstreams: ({ issuer, provider }) => [
      {
        ...upstream(issuer, evil.url, { scopes: [] }),
        name: 'evil',
        redirectUri: own ? `${issuer}/oauth/callback/evil` : `${issuer}/oauth/callback`,
      },
      corp(issuer, provider),
    ],
  })
  const clientId = await registerClient(rig)
  const self: Setup = {
    rig,
    evil,
    clientId,
    back: (redirectUri, state) => `${redirectUri}?code=own-code&state=${state}`,
  }
  return self
}

async function outcome({ rig, clientId }: Setup): Promise<string | null> {
  return (await login(rig, { client_id: clientId })).response.searchParams.get('error')
}

const sentCodes = ({ evil }: Setup): readonly (string | null)[] =>
  evil.seen.filter(({ path }) => path === '/token').map(({ form }) => form.get('code'))

t.test('mix-up: a code that arrives at another provider’s redirect URI is sent nowhere', async (t) => {
  const self = await start(t, { own: true })
  t.equal(await outcome(self), null, 'each works at its own address')
  t.same(sentCodes(self), ['own-code'])
  // The honest provider redirects to its own redirect URI, whatever the dishonest one put into the request.
  self.back = (_own, state) => `${self.rig.issuer}/oauth/callback?code=stolen-code&state=${state}`
  t.equal(await outcome(self), 'server_error')
  t.same(sentCodes(self), ['own-code'], 'the stolen code was sent nowhere')
})

t.test("mix-up: a code with another provider's issuer is sent nowhere", async (t) => {
  const self = await start(t, { own: false })
  self.back = (redirectUri, state) =>
    `${redirectUri}?code=stolen-code&state=${state}&iss=${encodeURIComponent(self.rig.provider.issuer)}`
  t.equal(await outcome(self), 'server_error')
  t.same(sentCodes(self), [])
  self.back = (redirectUri, state) =>
    `${redirectUri}?code=own-code&state=${state}&iss=${encodeURIComponent(self.evil.url)}`
  t.equal(await outcome(self), null, 'a provider’s own issuer is accepted')
})
