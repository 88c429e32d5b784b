/**
 * Mix-up between upstreams (RFC 9700 section 4.4): an upstream that is not honest sends the browser to another one, whose
 * code would then be carried to the first. Plain OAuth providers announce nothing, so the two defences that need no
 * announcement are tested here: a redirect URI of its own for each, and an issuer that is known to be somebody else's.
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
  /** What the dishonest provider sends the browser back with. */
  back: (redirectUri: string, state: string) => string
}

/** `evil` says who the user is; `corp` is honest. `own`: each has its own redirect URI. */
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

t.test('mix-up: a code that comes back at another provider’s redirect URI is sent nowhere', async (t) => {
  const self = await start(t, { own: true })
  t.equal(await outcome(self), null, 'each at its own address works')
  t.same(sentCodes(self), ['own-code'])
  // The honest provider answers at its own redirect URI, whatever the dishonest one put into the request.
  self.back = (_own, state) => `${self.rig.issuer}/oauth/callback?code=stolen-code&state=${state}`
  t.equal(await outcome(self), 'server_error')
  t.same(sentCodes(self), ['own-code'], 'the stolen one did not leave')
})

t.test('mix-up: a code that names another provider as its issuer is sent nowhere', async (t) => {
  const self = await start(t, { own: false })
  self.back = (redirectUri, state) =>
    `${redirectUri}?code=stolen-code&state=${state}&iss=${encodeURIComponent(self.rig.provider.issuer)}`
  t.equal(await outcome(self), 'server_error')
  t.same(sentCodes(self), [])
  self.back = (redirectUri, state) =>
    `${redirectUri}?code=own-code&state=${state}&iss=${encodeURIComponent(self.evil.url)}`
  t.equal(await outcome(self), null, 'an issuer of its own is no reason to refuse')
})
