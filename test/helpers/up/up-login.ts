/** `gatehouse up --login`, a user in a real Chromium, and MCP clients that sign in there. */
import type { Browser, Page } from 'playwright-core'
import type { Test } from 'tap'
import {
  connectSignedIn,
  type Generation,
  type Landing,
  openBrowser,
  type SignedInClient,
  startLanding,
  storingProvider,
} from '../authserver/signed-in-client.ts'
import { untyped } from '../untyped.ts'
import { makeUpHome, type UpHome } from './up-home.ts'

export const password = 'correct horse battery staple'

export interface UpLogin {
  readonly up: UpHome
  readonly browser: Browser
  readonly landing: Landing
  /** Address where the owner sets up a sign-in. */
  readonly ownerLink: string
  /** Name of the owner. */
  readonly owner: string
}

/** Starts in the background, with one server and the clients of Cursor. */
export async function startUpLogin(t: Test, ...args: string[]): Promise<UpLogin> {
  const up = await makeUpHome(t, ['cursor'])
  const started = await up.up('--background', '--login', '--json', ...args)
  if (started.code !== 0) throw new Error(started.stdout + started.stderr)
  const report = untyped(JSON.parse(started.stdout))
  const { users } = untyped(JSON.parse((await up.gatehouse('up', 'user', 'list', '--json')).stdout))
  return {
    up,
    browser: await openBrowser(t),
    landing: await startLanding(t),
    ownerLink: report.login.link,
    owner: users[0].name,
  }
}

/** Returns the enrolment link of a new user. */
export async function invite(up: UpHome, name: string): Promise<string> {
  const { code, stdout, stderr } = await up.gatehouse('up', 'user', 'add', name)
  if (code !== 0) throw new Error(stderr)
  return stdout.trim()
}

/** Opens an enrolment link and saves a password. Returns the heading of the page that follows. */
export async function choosePassword(page: Page, link: string, chosen = password): Promise<string> {
  await page.goto(link)
  await page.getByLabel('Password', { exact: true }).fill(chosen)
  await page.getByLabel('Repeat the password').fill(chosen)
  await page.getByRole('button', { name: 'Save the password' }).click()
  return (await page.locator('h1').textContent()) ?? ''
}

/** Gives the page an authenticator that confirms every request. */
export async function addAuthenticator(page: Page): Promise<void> {
  const devtools = await page.context().newCDPSession(page)
  await devtools.send('WebAuthn.enable')
  await devtools.send('WebAuthn.addVirtualAuthenticator', {
    options: {
      protocol: 'ctap2',
      transport: 'internal',
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
      automaticPresenceSimulation: true,
    },
  })
}

/** Fills the login page. */
export async function enterPassword(page: Page, name: string, given = password): Promise<void> {
  await page.getByLabel('Name').fill(name)
  await page.getByLabel('Password').fill(given)
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
}

/** Opens a login, allows the client's access, and returns when the login page is shown. */
async function openLogin(page: Page, start: URL): Promise<void> {
  await page.goto(start.href)
  await page.getByRole('button', { name: 'Allow and continue' }).click()
  await page.getByRole('heading', { name: 'Sign in to Gatehouse' }).waitFor()
}

/** Connects an MCP client whose user acts in `page`. `act` completes the login from the login page on. */
export async function connectClient(
  { up, landing }: Pick<UpLogin, 'up' | 'landing'>,
  page: Page,
  act: (page: Page) => Promise<void>,
  { generation = 'sdk1', url = up.url }: { readonly generation?: Generation; readonly url?: string } = {},
): Promise<SignedInClient> {
  return connectSignedIn({
    generation,
    url,
    provider: storingProvider(landing),
    async login(start) {
      const arrival = landing.next()
      await openLogin(page, start)
      await act(page)
      await page.waitForURL((url) => url.href.startsWith(landing.redirectUri))
      return { titles: [], query: await arrival }
    },
  })
}
