/** The login pages in Chromium: narrow and wide, dark and light, by keyboard, without complaints. */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { enrolmentUrl } from '../../../runtime/tools/up/identity/login-server.ts'
import { missingBrowser, openBrowser } from '../../helpers/authserver/signed-in-client.ts'
import { checkAccessibility } from '../../helpers/console/console-page.ts'
import { startLoginPages } from '../../helpers/up/login-pages.ts'
import { addAuthenticator, choosePassword, enterPassword, password } from '../../helpers/up/up-login.ts'

t.setTimeout(180_000)

const artefacts = join(import.meta.dirname, '../../artefacts')

t.test(
  'login pages: readable at 390 and 1440 pixels, dark and light',
  { skip: missingBrowser },
  async (t) => {
    mkdirSync(artefacts, { recursive: true })
    const browser = await openBrowser(t)
    const rig = await startLoginPages(t)
    for (const colorScheme of ['dark', 'light'] as const) {
      for (const width of [390, 1440]) {
        const context = await browser.newContext({ colorScheme, viewport: { width, height: 800 } })
        const page = await context.newPage()
        const complaints: string[] = []
        page.on('console', (message) => complaints.push(message.text()))
        page.on('pageerror', (error) => complaints.push(error.message))
        const show = async (name: string) => {
          await page.screenshot({
            path: join(artefacts, `up-${name}-${width}-${colorScheme}.png`),
            fullPage: true,
          })
          await checkAccessibility(t, page, `${name} ${width} ${colorScheme}`)
          t.ok(await page.evaluate(`document.documentElement.scrollWidth <= ${width}`), `${name} ${width}`)
        }
        await page.goto(enrolmentUrl(rig.origin, rig.users.invite(`user${width}.${colorScheme}`)))
        await show('enrolment')
        await page.goto(`${rig.origin}/login/enrol?key=unknown`)
        await show('used-link')
        await page.goto(rig.start)
        await show('login')
        await enterPassword(page, 'nobody', 'wrong')
        await page.getByRole('alert').filter({ hasText: 'wrong' }).waitFor()
        await show('wrong-password')
        const unexpected = complaints.filter((text) => !/favicon|403|status of 4/.test(text))
        t.strictSame(unexpected, [], 'the policy allows what the pages do')
        await context.close()
      }
    }
  },
)

t.test('login pages: by keyboard, and without a script', { skip: missingBrowser }, async (t) => {
  const browser = await openBrowser(t)
  const rig = await startLoginPages(t)
  const page = await browser.newPage()
  t.equal(
    await choosePassword(page, enrolmentUrl(rig.origin, rig.users.invite('alice'))),
    'You can sign in now',
  )
  await page.goto(rig.start)
  await page.getByLabel('Name').focus()
  await page.keyboard.type('alice')
  await page.keyboard.press('Tab')
  await page.keyboard.type(password)
  const left = page.waitForRequest((request) =>
    request.url().startsWith('http://127.0.0.1:4483/mcp/oauth/callback'),
  )
  await page.keyboard.press('Enter')
  t.ok(new URL((await left).url()).searchParams.get('code'))

  const plain = await (await browser.newContext({ javaScriptEnabled: false })).newPage()
  await plain.goto(rig.start)
  t.notOk(await plain.getByRole('button', { name: 'Sign in with a passkey' }).isVisible())
  const gone = plain.waitForRequest((request) => request.url().startsWith('http://127.0.0.1:4483/'))
  await enterPassword(plain, 'alice')
  t.ok(await gone)
})

t.test('login pages: a canceled or unknown passkey shows a message', { skip: missingBrowser }, async (t) => {
  const browser = await openBrowser(t)
  const rig = await startLoginPages(t)
  const page = await (await browser.newContext()).newPage()
  await addAuthenticator(page)
  await page.goto(enrolmentUrl(rig.origin, rig.users.invite('alice')))
  await page.getByRole('button', { name: 'Create a passkey' }).click()
  await page.getByRole('heading', { name: 'You can sign in now' }).waitFor()
  rig.users.remove('alice')
  await page.goto(rig.start)
  await page.getByRole('button', { name: 'Sign in with a passkey' }).click()
  await page.getByText('This passkey was not accepted.').waitFor()
  await checkAccessibility(t, page, 'rejected passkey')
})
