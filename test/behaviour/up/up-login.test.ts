/** `gatehouse up --login` with the built-in identity provider, in a real Chromium. */
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { startLogin } from '../../../runtime/tools/up/identity/login.ts'
import { Users } from '../../../runtime/tools/up/identity/users.ts'
import { missingBrowser } from '../../helpers/authserver/signed-in-client.ts'
import { connectThroughEntry, makeUpHome } from '../../helpers/up/up-home.ts'
import {
  addAuthenticator,
  choosePassword,
  connectClient,
  enterPassword,
  invite,
  password,
  startUpLogin,
} from '../../helpers/up/up-login.ts'
import { untyped } from '../../helpers/untyped.ts'

t.setTimeout(300_000)

const skip = { skip: missingBrowser }

t.test(
  'up --login: a client signs in with a password, and the own clients need no login',
  skip,
  async (t) => {
    const login = await startUpLogin(t)
    const { up, browser, ownerLink, owner } = login
    t.match(ownerLink, new RegExp(`^http://localhost:${up.port}/login/enrol\\?key=[\\w-]{43}$`))

    const refused = await fetch(up.url, {
      method: 'POST',
      body: '{}',
      headers: { 'content-type': 'application/json' },
    })
    t.equal(refused.status, 401)
    t.match(
      refused.headers.get('www-authenticate'),
      /resource_metadata="http:\/\/127\.0\.0\.1:\d+\/\.well-known\//,
    )
    for (const path of ['/status', '/health', '/readyz', '/metrics'])
      t.equal((await fetch(new URL(path, up.url))).status, 401, `${path} requires a client’s token`)

    const own = await connectThroughEntry(up, 'cursor')
    t.match(await own.listTools(), { tools: [{ name: 'files_start' }] })
    await own.close()

    const page = await browser.newPage()
    t.equal(await choosePassword(page, ownerLink), 'You can sign in now')
    for (const generation of ['sdk1', 'sdk2'] as const) {
      const context = await browser.newContext()
      const client = await connectClient(
        login,
        await context.newPage(),
        (page) => enterPassword(page, owner),
        {
          generation,
        },
      )
      t.strictSame(await client.listTools(), ['files_start'], generation)
      t.match(await client.call('files_start'), /files/)
      await client.close()
      await context.close()
    }

    const status = await up.gatehouse('status')
    t.notMatch(status.stdout, '/login/enrol', 'a used link is not shown again')
    const file = join(up.state, '../up-login/users.json')
    t.equal(statSync(file).mode & 0o777, 0o600)
    t.equal(statSync(join(file, '..')).mode & 0o777, 0o700)
    const stored = readFileSync(file, 'utf8')
    t.notMatch(stored, password)
    t.match(stored, /"password":"scrypt\$131072\$8\$1\$/)
    const key = new URL(ownerLink).searchParams.get('key') ?? ''
    for (const text of [stored, readFileSync(join(up.state, 'up.log'), 'utf8')]) {
      t.notMatch(text, key, 'no file contains the key of the link')
      t.notMatch(text, up.token('cursor'))
    }
  },
)

t.test('up --login: a client signs in with a passkey', skip, async (t) => {
  const login = await startUpLogin(t)
  const { up, browser, ownerLink } = login
  const page = await browser.newPage()
  await addAuthenticator(page)
  await page.goto(ownerLink)
  await page.getByRole('button', { name: 'Create a passkey' }).click()
  await page.getByRole('heading', { name: 'You can sign in now' }).waitFor()
  const client = await connectClient(login, page, (page) =>
    page.getByRole('button', { name: 'Sign in with a passkey' }).click(),
  )
  t.strictSame(await client.listTools(), ['files_start'])
  await client.close()
  t.match((await up.gatehouse('up', 'user', 'list')).stdout, /passkey$/m)

  const other = await (await browser.newContext()).newPage()
  await addAuthenticator(other)
  await other.goto(await invite(up, 'mallory'))
  await other.getByRole('button', { name: 'Create a passkey' }).click()
  await other.getByRole('heading', { name: 'You can sign in now' }).waitFor()
  t.equal((await up.gatehouse('up', 'user', 'remove', 'mallory')).code, 0)
  const rejected = connectClient(login, other, async (page) => {
    await page.getByRole('button', { name: 'Sign in with a passkey' }).click()
    await page.getByText('This passkey was not accepted.').waitFor()
    throw new Error('rejected')
  })
  await t.rejects(rejected, { message: 'rejected' }, 'the passkey of a removed user')
})

t.test('up --login: the login page, other users, removed users, and a restart', skip, async (t) => {
  const login = await startUpLogin(t)
  const { up, browser } = login

  await t.test('the login page shows the address and the expired login', async (t) => {
    await t.rejects(
      connectClient(login, await browser.newPage(), async (page) => {
        t.match(await page.locator('main').textContent(), up.url)
        const address = page.url()
        await page.context().clearCookies()
        await page.goto(address)
        t.equal(await page.locator('h1').textContent(), 'This sign-in has expired')
        throw new Error('ended')
      }),
      { message: 'ended' },
    )
  })

  const link = await invite(up, 'Alice')
  const page = await browser.newPage()
  t.equal(await choosePassword(page, link), 'You can sign in now')
  t.equal((await up.gatehouse('up', 'user', 'list')).stdout.split('\n')[1], 'alice  password')
  const alice = await connectClient(login, page, (page) => enterPassword(page, 'alice'))
  t.strictSame(await alice.listTools(), ['files_start'])

  await t.test('a removed user loses access at once, and the own clients continue', async (t) => {
    t.equal((await up.gatehouse('up', 'user', 'remove', 'alice')).code, 0)
    await t.rejects(alice.listTools())
    await alice.close().catch(() => undefined)
    const own = await connectThroughEntry(up, 'cursor')
    t.match(await own.listTools(), { tools: [{ name: 'files_start' }] })
    await own.close()
    const rejected = connectClient(login, await (await browser.newContext()).newPage(), async (page) => {
      await enterPassword(page, 'alice')
      await page.getByText('The name or the password is wrong.').waitFor()
      throw new Error('rejected')
    })
    await t.rejects(rejected, { message: 'rejected' })
    t.match(await up.gatehouse('up', 'user', 'remove', 'alice'), { code: 2, stderr: /no user alice/ })
  })

  await t.test('after a restart, users keep their passwords, and clients sign in again', async (t) => {
    t.equal(await choosePassword(page, await invite(up, 'bob')), 'You can sign in now')
    t.equal((await up.gatehouse('down')).code, 0)
    t.equal((await up.up('--background', '--login')).code, 0)
    const bob = await connectClient(login, await (await browser.newContext()).newPage(), (page) =>
      enterPassword(page, 'bob'),
    )
    t.strictSame(await bob.listTools(), ['files_start'])
    await bob.close()
  })

  t.match(await up.gatehouse('up', 'user', 'add', '../x'), { code: 2, stderr: /must have 1 to 64 letters/ })
  t.equal((await up.gatehouse('down')).code, 0)
  t.match(await up.gatehouse('up', 'user', 'list'), { code: 2, stderr: /gatehouse up is not running/ })
})

t.test('up --login: an owner whose passkey belongs to another host gets a new link', async (t) => {
  const usersFile = join(t.testdir({}), 'users.json')
  const ownerLinkAt = async (publicUrl?: string) => {
    const login = await startLogin({ allow: [], share: false, publicUrl }, { port: 4483, usersFile })
    t.teardown(() => login.close())
    return login.accounts?.ownerLink()
  }
  const key = new URL((await ownerLinkAt()) ?? '').searchParams.get('key') ?? ''
  const passkey = { id: 'p1', publicKey: 'AAAA', counter: 0, host: 'localhost' }
  t.ok(new Users(usersFile).enrol(key, { passkey }))
  t.equal(await ownerLinkAt(), undefined)
  t.match(await ownerLinkAt('https://tools.example.com'), 'https://tools.example.com/login/enrol?key=')
})

t.test('up: without --login, there are no users', async (t) => {
  const up = await makeUpHome(t, ['cursor'])
  t.equal((await up.up('--background')).code, 0)
  t.match(await up.gatehouse('up', 'user', 'add', 'alice'), { code: 2, stderr: /start it with --login/ })
  t.equal(untyped(JSON.parse((await up.gatehouse('status', '--json')).stdout)).login, null)
  const page = await fetch(new URL('/login/enrol?key=x', up.url))
  t.equal(page.status, 401)
})
