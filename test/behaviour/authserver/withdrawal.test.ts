/** Withdrawn consent: neither a login in flight nor clock differences bring it back. */
import t from 'tap'
import {
  authorizeUrl,
  login,
  pkce,
  registerClient,
  type Rig,
  startAuthServer,
} from '../../helpers/authserver/authserver.ts'
import { Browser, type Shown } from '../../helpers/authserver/cookie-browser.ts'

const web = 'https://app.example.com/cb'

async function setup(t: Parameters<typeof startAuthServer>[0]) {
  const rig = await startAuthServer(t)
  const clientId = await registerClient(rig, { redirect_uris: [web] })
  const { browser } = await login(rig, { client_id: clientId, redirect_uri: web })
  const go = (stopAt: string, more: Readonly<Record<string, string>> = {}): Promise<Shown> => {
    const { challenge } = pkce()
    const start = authorizeUrl(rig, {
      client_id: clientId,
      redirect_uri: web,
      code_challenge: challenge,
      ...more,
    })
    return browser.open(start, stopAt)
  }
  return { rig, browser, go }
}

/** Signs the first client on the page out, at this server. */
async function withdraw(rig: Rig, browser: Browser, at = rig.issuer): Promise<void> {
  const page = await browser.open(`${at}/oauth/accounts`)
  const value = (name: string): string =>
    new RegExp(`name="${name}" value="([^"]*)"`).exec(page.text)?.[1] ?? ''
  const body = new URLSearchParams({ form: value('form'), client: value('client'), action: 'end' })
  const headers = { origin: rig.issuer, 'sec-fetch-site': 'same-origin' }
  await browser.open(`${at}/oauth/accounts`, undefined, { method: 'POST', body, headers })
}

t.test('withdrawal: a login that skipped the page shows it after all', async (t) => {
  const { rig, browser, go } = await setup(t)
  const callback = `${rig.issuer}/oauth/callback`
  const [pending, silent] = [await go(callback), await go(callback, { prompt: 'none' })]
  t.ok(pending.url.href.startsWith(callback), 'no page was shown')
  await withdraw(rig, browser)
  const refused = await browser.open(silent.url, web)
  t.equal(refused.url.searchParams.get('error'), 'consent_required')
  const page = await browser.open(pending.url, web)
  t.equal(page.status, 200)
  t.match(page.text, /wants to act for you/)
  t.equal((await go(web)).status, 200, 'that login stored no consent')
  t.match((await browser.press(page, 'approve', web)).url.searchParams.get('code'), /^gh_ac_/)
  t.match((await go(web)).url.searchParams.get('code'), /^gh_ac_/, 'remembered again')
})

t.test('withdrawal: consent from before the withdrawal is not remembered', async (t) => {
  const { rig, browser, go } = await setup(t)
  const page = await go(web, { prompt: 'consent' })
  const pending = await browser.press(page, 'approve', `${rig.issuer}/oauth/callback`)
  rig.pass(1_000)
  await withdraw(rig, browser)
  const back = await browser.open(pending.url, web)
  t.match(back.url.searchParams.get('code'), /^gh_ac_/, 'the submitted response is valid')
  t.equal((await go(web)).status, 200, 'but only for this login')
})

t.test(
  'withdrawal: takes effect even if the clock of the replica that stored the consent is ahead',
  async (t) => {
    const { rig, browser, go } = await setup(t)
    rig.pass(-120_000)
    await withdraw(rig, browser)
    t.equal((await go(web)).status, 200)
  },
)
