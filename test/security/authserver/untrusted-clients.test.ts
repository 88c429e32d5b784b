/** Limits for untrusted clients: confused deputy, floods, and information in logs and errors. */
import { decodeJwt } from 'jose'
import t from 'tap'
import { makeMemoryStore } from '../../../runtime/store/index.ts'
import {
  authorizeUrl,
  login,
  pkce,
  redeem,
  redirectUri,
  refresh,
  registerClient,
  startAuthServer,
  tokensOf,
  upstreamSecret,
  postRegistration,
} from '../../helpers/authserver/authserver.ts'
import { Browser } from '../../helpers/authserver/cookie-browser.ts'

t.test("confused deputy: a hostile registration gets nothing from the user's existing login", async (t) => {
  const rig = await startAuthServer(t)
  const trusted = await registerClient(rig, { redirect_uris: ['https://good.example/cb'] })
  const { browser } = await login(rig, { client_id: trusted, redirect_uri: 'https://good.example/cb' })
  const evil = 'https://evil.example/cb'
  const hostile = await registerClient(rig, { redirect_uris: [evil], client_name: 'Good Client' })
  const upstreamBefore = rig.provider.requests.length
  const page = await browser.open(
    authorizeUrl(rig, { client_id: hostile, redirect_uri: evil, code_challenge: pkce().challenge }),
    evil,
  )
  t.equal(page.status, 200, 'the user is asked')
  t.match(page.text, 'evil.example', 'and sees the destination of the response')
  t.equal(rig.provider.requests.length, upstreamBefore, 'before anything went upstream')
  const silent = await browser.open(
    authorizeUrl(rig, {
      client_id: hostile,
      redirect_uri: evil,
      prompt: 'none',
      code_challenge: pkce().challenge,
    }),
    evil,
  )
  t.equal(silent.url.searchParams.get('error'), 'consent_required')
})

t.test(
  'floods: started logins are limited per caller, and a rejection is 429 with Retry-After',
  async (t) => {
    const rig = await startAuthServer(t, { store: makeMemoryStore({ now: () => 0 }) })
    const clientId = await registerClient(rig)
    const url = authorizeUrl(rig, { client_id: clientId, code_challenge: pkce().challenge })
    const responses = await Promise.all(Array.from({ length: 310 }, () => fetch(url, { redirect: 'manual' })))
    t.equal(responses.filter((response) => response.status === 303).length, 300)
    t.match(responses.find((response) => response.status === 429)?.headers.get('retry-after'), /^\d+$/)
  },
)

t.test('floods: untrusted clients who fill the memory leave space for signed-in users', async (t) => {
  const rig = await startAuthServer(t, { store: makeMemoryStore({ maxBytes: 200_000 }) })
  const done = await login(rig)
  const tokens = await tokensOf(await redeem(rig, done))
  const more = [await login(rig), await login(rig), await login(rig)]
  for (const length of [4_096, 1_000, 100, 1]) {
    for (;;) {
      const { clientId } = done
      const url = authorizeUrl(rig, {
        client_id: clientId,
        code_challenge: pkce().challenge,
        state: 's'.repeat(length),
      })
      const response = await fetch(url, { redirect: 'manual' })
      if (!/consent\?request/.test(response.headers.get('location') ?? '')) break
    }
  }
  const full = await postRegistration(rig, { redirect_uris: [redirectUri] })
  t.equal(full.status, 503)
  for (const one of more) t.equal((await redeem(rig, one)).status, 200)
  t.match(await tokensOf(await refresh(rig, done.clientId, tokens.refresh_token)), {
    refresh_token: /^gh_rt_/,
  })
})

t.test('floods: bodies are limited to 64 KiB on every endpoint', async (t) => {
  const rig = await startAuthServer(t)
  const body = `x=${'y'.repeat(80_000)}`
  for (const path of [
    'token',
    'register',
    'revoke',
    'introspect',
    'authorize',
    'consent',
    'confirm',
    'userinfo',
  ]) {
    const response = await fetch(`${rig.issuer}/oauth/${path}`, {
      method: 'POST',
      body,
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
    })
    t.equal(response.status, 413, path)
  }
})

t.test('secrets: a complete run at debug level leaves no secret in logs, events or errors', async (t) => {
  const rig = await startAuthServer(t)
  const web = 'https://app.example.com/cb'
  const clientId = await registerClient(rig, { redirect_uris: [web, redirectUri] })
  const done = await login(rig, {
    client_id: clientId,
    redirect_uri: web,
    state: 'client-state-value',
    nonce: 'client-nonce-value',
    login_hint: 'hint@example.test',
  })
  const tokens = await tokensOf(await redeem(rig, done, { redirect_uri: web }))
  const next = await tokensOf(await refresh(rig, clientId, tokens.refresh_token))
  rig.pass(70_000)
  await refresh(rig, clientId, tokens.refresh_token)
  await redeem(rig, done)
  await new Browser().open(`${rig.issuer}/oauth/callback?state=stolen-state-value&code=stolen-code-value`)
  await new Browser().open(
    `${rig.issuer}/oauth/callback?error=x&error_description=upstream-words&state=other-state-value`,
  )
  await fetch(`${rig.issuer}/oauth/token`, {
    method: 'POST',
    body: 'grant_type=authorization_code&code=forged-code-value',
  })
  await fetch(`${rig.issuer}/oauth/userinfo`, { headers: { authorization: 'Bearer forged-token-value' } })

  const claims = decodeJwt(next.access_token)
  const all = `${rig.logged()}\n${JSON.stringify(rig.events)}`
  t.ok(all.length > 500, 'something was logged')
  const secrets = [
    done.code,
    done.verifier,
    tokens.access_token,
    tokens.refresh_token,
    tokens.id_token,
    next.refresh_token,
    String(claims['tsid']),
    upstreamSecret,
    'client-state-value',
    'client-nonce-value',
    'hint@example.test',
    'alice@example.test',
    'stolen-state-value',
    'stolen-code-value',
    'other-state-value',
    'upstream-words',
    'forged-code-value',
    'forged-token-value',
    ...done.browser.cookies(rig.issuer).values(),
  ]
  for (const secret of secrets) t.notOk(all.includes(secret), `${secret.slice(0, 12)}…`)
  t.same([...new Set(rig.events.map((event) => event.type))].toSorted(), [
    'client_registered',
    'code_issued',
    'code_reused',
    'consent_given',
    'login_completed',
    'refresh_reused',
    'token_issued',
    'token_refreshed',
  ])
})

t.test("errors: a response never repeats the request's input", async (t) => {
  const rig = await startAuthServer(t)
  const clientId = await registerClient(rig)
  const marker = 'MARKER<b>"\'&'
  const urls = [
    authorizeUrl(rig, { client_id: marker }),
    authorizeUrl(rig, { client_id: clientId, redirect_uri: `https://x.example/${marker}` }),
    new URL(`${rig.issuer}/oauth/consent?request=${encodeURIComponent(marker)}`),
    new URL(`${rig.issuer}/oauth/callback?state=${encodeURIComponent(marker)}`),
    new URL(`${rig.issuer}/oauth/callback?error=${encodeURIComponent(marker)}`),
  ]
  for (const url of urls) {
    for (const accept of ['text/html', 'application/json']) {
      const response = await fetch(url, { redirect: 'manual', headers: { accept } })
      t.notMatch(await response.text(), /MARKER/, `${url.pathname} ${accept}`)
    }
  }
  const token = await fetch(`${rig.issuer}/oauth/token`, {
    method: 'POST',
    body: new URLSearchParams({ grant_type: marker, client_id: clientId, scope: marker }),
  })
  t.notMatch(await token.text(), /MARKER/)
  const repeated = await fetch(`${rig.issuer}/oauth/token`, {
    method: 'POST',
    body: new URLSearchParams([
      [marker, '1'],
      [marker, '2'],
    ]),
  })
  t.notMatch(await repeated.text(), /MARKER/)
})
