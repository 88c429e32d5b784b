/**
 * The pages in a real browser: a login by keyboard, the content security policy, both color schemes, a small screen.
 */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import t, { type Test } from 'tap'
import {
  authorizeUrl,
  corp,
  pkce,
  registerClient,
  type Rig,
  startAuthServer,
} from '../../helpers/authserver/authserver.ts'
import { startHub } from '../../helpers/authserver/oauth2-peer.ts'
import { missingBrowser, openBrowser, startLanding } from '../../helpers/authserver/signed-in-client.ts'
import { startLoopback } from '../../helpers/loopback.ts'

t.setTimeout(180_000)

const artefacts = join(import.meta.dirname, '../../artefacts')

async function open(t: Test): Promise<Browser> {
  mkdirSync(artefacts, { recursive: true })
  return openBrowser(t)
}

/** The client's page at its redirect URI, and the query of the first visit. */
async function client(t: Test): Promise<{ redirect: string; response: Promise<URLSearchParams> }> {
  const landing = await startLanding(t)
  return { redirect: landing.redirectUri, response: landing.next() }
}

/** All errors that the page reported, and all requests that it made. */
function watch(page: Page): { problems: string[]; loaded: string[] } {
  const seen = { problems: [] as string[], loaded: [] as string[] }
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') seen.problems.push(message.text())
  })
  page.on('pageerror', (error) => seen.problems.push(error.message))
  page.on('request', (request) => seen.loaded.push(`${request.resourceType()} ${request.url()}`))
  return seen
}

async function start(rig: Rig, redirect: string, name = 'Test Client'): Promise<string> {
  const clientId = await registerClient(rig, { redirect_uris: [redirect], client_name: name })
  return authorizeUrl(rig, {
    client_id: clientId,
    redirect_uri: redirect,
    code_challenge: pkce().challenge,
    state: 's',
  }).href
}

t.test(
  'pages: a login by keyboard alone, with redirects to another host and back',
  { skip: missingBrowser },
  async (t) => {
    const browser = await open(t)
    const rig = await startAuthServer(t)
    const { redirect, response } = await client(t)
    const page = await browser.newPage()
    const seen = watch(page)
    await page.goto(await start(rig, redirect))
    t.match(await page.title(), /^Allow access to 127\.0\.0\.1:\d+\?$/)
    t.equal(await page.locator('h1').count(), 1)
    t.equal(await page.locator('html').getAttribute('lang'), 'en')
    await page.screenshot({ path: join(artefacts, 'consent-light.png'), fullPage: true })
    const mine = seen.loaded.filter((line) => line.includes(rig.issuer))
    t.ok(
      mine.every((line) => line.startsWith('document ') || line.endsWith('/favicon.ico')),
      mine.join('\n'),
    )
    await page.keyboard.press('Tab')
    t.equal(await page.evaluate('document.activeElement.textContent'), 'Allow and continue')
    const outline = await page.evaluate('getComputedStyle(document.activeElement).outlineStyle')
    t.equal(outline, 'solid', 'the focus is visible')
    await page.keyboard.press('Enter')
    t.match(Object.fromEntries(await response), { state: 's', iss: rig.issuer, code: /^gh_ac_/ })
    t.same(
      seen.problems.filter((problem) => !problem.includes('favicon')),
      [],
      'the policy allows what the page does',
    )
  },
)

t.test('pages: a refusal leads back to the client', { skip: missingBrowser }, async (t) => {
  const browser = await open(t)
  const rig = await startAuthServer(t)
  const { redirect, response } = await client(t)
  const page = await browser.newPage()
  await page.goto(await start(rig, redirect))
  await page.getByRole('button', { name: 'Cancel' }).click()
  t.equal((await response).get('error'), 'access_denied')
})

t.test(
  'pages: dark, narrow and long pages are readable and do not scroll sideways',
  { skip: missingBrowser },
  async (t) => {
    const browser = await open(t)
    const rig = await startAuthServer(t)
    const { redirect } = await client(t)
    for (const colorScheme of ['dark', 'light'] as const) {
      const context = await browser.newContext({ colorScheme, viewport: { width: 320, height: 640 } })
      const page = await context.newPage()
      await page.goto(await start(rig, redirect, `A${'very'.repeat(30)}LongName <b>bold</b>`))
      await page.screenshot({ path: join(artefacts, `consent-narrow-${colorScheme}.png`), fullPage: true })
      t.equal(await page.evaluate('document.documentElement.scrollWidth <= 320'), true, colorScheme)
      t.equal(await page.locator('b').count(), 0, 'names are shown as text')
      for (const selector of ['p.soft', 'dt', 'dd', 'h1', 'button.main', 'button:not(.main)', '.warn']) {
        t.ok(
          (await contrast(page, selector)) >= 4.5,
          `${colorScheme} ${selector}: ${await contrast(page, selector)}`,
        )
      }
      await context.close()
    }
  },
)

/** WCAG contrast of an element's text against its nearest painted background. A string, because it runs in the page. */
async function contrast(page: Page, selector: string): Promise<number> {
  const ratio: unknown = await page.evaluate(`((wanted) => {
    const element = document.querySelector(wanted)
    if (!element) return 0
    const rgb = (text) => (text.match(/[\\d.]+/g) ?? []).map(Number)
    const luminance = (color) => {
      const [r, g, b] = color.slice(0, 3).map((one) => {
        const c = one / 255
        return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4
      })
      return 0.2126 * r + 0.7152 * g + 0.0722 * b
    }
    let behind = element
    let background = [0, 0, 0, 0]
    while (behind && (background[3] ?? 1) === 0) {
      background = rgb(getComputedStyle(behind).backgroundColor)
      behind = behind.parentElement
    }
    const [a, b] = [luminance(rgb(getComputedStyle(element).color)), luminance(background)]
    return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05)
  })(${JSON.stringify(selector)})`)
  return Number(ratio)
}

t.test(
  'pages: framing is forbidden, and injected scripts do not run',
  { skip: missingBrowser },
  async (t) => {
    const browser = await open(t)
    const rig = await startAuthServer(t)
    const { redirect } = await client(t)
    const url = await start(rig, redirect)
    const attacker = await startLoopback(() => ({
      headers: { 'content-type': 'text/html' },
      body: `<iframe id="f" src="${url.replace(/&/g, '&amp;')}"></iframe>`,
    }))
    t.teardown(() => attacker.close())
    const page = await browser.newPage()
    const seen = watch(page)
    await page.goto(attacker.url)
    await page.waitForLoadState('networkidle')
    t.ok(
      seen.problems.some((problem) => /frame-ancestors|X-Frame-Options/i.test(problem)),
      seen.problems.join('\n'),
    )
    const framed = page.frames()[1]
    t.equal(await framed?.locator('form').count(), 0)

    const own = await browser.newPage()
    await own.goto(url)
    const ran = await own.evaluate(`new Promise((resolve) => {
    document.addEventListener('securitypolicyviolation', (event) => resolve(event.effectiveDirective))
    const script = document.createElement('script')
    script.textContent = 'window.pwned = true'
    document.body.append(script)
  })`)
    t.match(ran, /script-src/)
    t.equal(await own.evaluate('window.pwned === undefined'), true)
  },
)

t.test('pages: another site cannot press the button (CSRF)', { skip: missingBrowser }, async (t) => {
  const browser = await open(t)
  const rig = await startAuthServer(t)
  const { redirect } = await client(t)
  const victim = await browser.newContext()
  const attackersPage = await browser.newPage()
  await attackersPage.goto(await start(rig, redirect))
  const fields = await attackersPage.evaluate(
    `Object.fromEntries(new FormData(document.querySelector('form')))`,
  )
  const inputs = Object.entries(fields as Record<string, string>).map(
    ([name, value]) => `<input name="${name}" value="${value}">`,
  )
  const attacker = await startLoopback(() => ({
    headers: { 'content-type': 'text/html' },
    body: `<form method="post" action="${rig.issuer}/oauth/consent">${inputs.join('')}<input name="action" value="approve"></form><script>document.forms[0].submit()</script>`,
  }))
  t.teardown(() => attacker.close())
  const page = await victim.newPage()
  const [response] = await Promise.all([
    page.waitForResponse((one) => one.url().endsWith('/oauth/consent')),
    page.goto(attacker.url).catch(() => undefined),
  ])
  t.equal(response.status(), 403)
  t.same(await victim.cookies(rig.issuer), [], 'the victim’s browser has no binding')
  await page.waitForLoadState()
  await page.screenshot({ path: join(artefacts, 'error.png'), fullPage: true })
})

t.test(
  'pages: the user can choose among several providers, also after a failure',
  { skip: missingBrowser },
  async (t) => {
    const browser = await open(t)
    const hub = await startHub(t, { back: () => ({ error: 'access_denied' }) })
    const rig = await startAuthServer(t, {
      upstreams: ({ issuer, provider }) => [corp(issuer, provider), hub.upstream(issuer)],
    })
    const { redirect, response } = await client(t)
    const page = await browser.newPage()
    const seen = watch(page)
    await page.goto(await start(rig, redirect))
    await page.screenshot({ path: join(artefacts, 'consent-several.png'), fullPage: true })
    t.equal(await page.getByRole('group', { name: 'You will sign in at' }).count(), 1)
    t.equal(await page.getByRole('checkbox', { name: /hub/ }).isChecked(), true)
    await page.getByRole('button', { name: 'Allow and continue' }).click()
    await page.getByRole('heading', { name: 'hub could not be connected' }).waitFor()
    await page.screenshot({ path: join(artefacts, 'provider-failed.png'), fullPage: true })
    await page.getByRole('button', { name: 'Continue without it' }).click()
    t.match((await response).get('code'), /^gh_ac_/)
    t.same(
      seen.problems.filter((problem) => !problem.includes('favicon')),
      [],
    )
  },
)

t.test(
  'pages: connected accounts are usable by keyboard, labeled, in both color schemes, on a small screen',
  { skip: missingBrowser, timeout: 60_000 },
  async (t) => {
    const browser = await open(t)
    const hub = await startHub(t)
    const rig = await startAuthServer(t, {
      upstreams: ({ issuer, provider }) => [corp(issuer, provider), hub.upstream(issuer)],
    })
    const { redirect, response } = await client(t)
    for (const colorScheme of ['light', 'dark'] as const) {
      const context = await browser.newContext({ colorScheme, viewport: { width: 320, height: 640 } })
      const page = await context.newPage()
      const seen = watch(page)
      await page.goto(await start(rig, redirect, `Notes${'and'.repeat(20)}Tasks`))
      await page.getByRole('button', { name: 'Allow and continue' }).click()
      await page.waitForURL((url) => url.href.startsWith(redirect))
      await response
      await page.goto(`${rig.issuer}/oauth/accounts`)
      t.equal(await page.title(), 'Connected accounts')
      t.equal(
        await page.evaluate('document.documentElement.scrollWidth <= 320'),
        true,
        'no scrolling sideways',
      )
      for (const selector of ['h1', 'legend', 'dt', 'dd', 'button', '.soft']) {
        t.ok((await contrast(page, selector)) >= 4.5, `${colorScheme} ${selector}`)
      }
      const row = page.locator('dl > div', { hasText: 'hub' }).first()
      t.match(await row.innerText(), /Connected, expires in 60 minutes/)
      await page.screenshot({ path: join(artefacts, `accounts-${colorScheme}.png`), fullPage: true })
      await page
        .getByRole('button', { name: /^Disconnect hub from Notes/ })
        .first()
        .click()
      await page.getByText('Not connected').waitFor()
      const connect = page.getByRole('button', { name: /^Connect hub for Notes/ }).first()
      await connect.focus()
      await page.keyboard.press('Enter')
      await row.getByText('Connected, expires in').waitFor()
      t.equal(page.url(), `${rig.issuer}/oauth/accounts`, 'through the provider and back')
      t.same(
        seen.problems.filter((problem) => !problem.includes('favicon')),
        [],
        'the policy allows what the page does',
      )
      await context.close()
    }
  },
)
