/** Attacks on the login pages of `gatehouse up --login`: guessed passwords, stolen links, forged requests, floods. */
import { statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { Attempts } from '../../runtime/tools/up/identity/attempts.ts'
import { enrolmentUrl } from '../../runtime/tools/up/identity/login-server.ts'
import { hashPassword, isPassword } from '../../runtime/tools/up/identity/passwords.ts'
import { Users } from '../../runtime/tools/up/identity/users.ts'
import { Browser } from '../helpers/authserver/cookie-browser.ts'
import { clientSecret, type LoginRig, redirectUri, startLoginPages } from '../helpers/up/login-pages.ts'

t.setTimeout(120_000)

const password = 'correct horse battery staple'
const verifier = 'dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk'

const form = (fields: Record<string, string>): RequestInit => ({
  method: 'POST',
  body: new URLSearchParams(fields),
})

async function enrolled(rig: LoginRig, name: string): Promise<void> {
  const key = rig.users.invite(name)
  const answer = await fetch(
    enrolmentUrl(rig.origin, key).replace(/\?.*/, ''),
    form({ key, password, repeated: password }),
  )
  t.equal(answer.status, 200)
}

t.test('login pages: a code is issued only to the virtual server, for the user who signed in', async (t) => {
  const rig = await startLoginPages(t)
  await enrolled(rig, 'alice')
  const browser = new Browser()
  const page = await browser.open(rig.start)
  t.equal(page.status, 200)
  const signedIn = await browser.open(page.url, undefined, form({ name: ' Alice ', password }))
  const next = signedIn.headers.get('refresh')?.replace('0; url=', '') ?? ''
  t.match(next, `${rig.origin}/login/auth/`)
  const arrival = await browser.open(next, redirectUri)
  const code = arrival.url.searchParams.get('code') ?? ''
  t.ok(code)
  const redeem = (secret: string) =>
    fetch(`${rig.server.url}/login/token`, {
      ...form({ grant_type: 'authorization_code', code, redirect_uri: redirectUri, code_verifier: verifier }),
      headers: { authorization: `Basic ${Buffer.from(`gatehouse-up:${secret}`).toString('base64')}` },
    })
  t.equal((await redeem('wrong')).status, 401)
  const tokens = (await (await redeem(clientSecret)).json()) as { access_token: string }
  const me = await fetch(`${rig.server.url}/login/me`, {
    headers: { authorization: `Bearer ${tokens.access_token}` },
  })
  t.match(await me.json(), { sub: rig.users.named('alice')?.id, name: 'alice' })

  const evil = new URL(rig.start)
  evil.searchParams.set('redirect_uri', 'https://evil.example/callback')
  const refused = await new Browser().open(evil)
  t.match(refused, { status: 400, text: /Sign-in is not possible/ })
  t.notMatch(refused.text, 'evil.example')

  t.ok(rig.users.remove('alice'))
  const again = await browser.open(rig.start)
  t.match(again.text, /<h1>Sign in to Gatehouse/, 'a browser keeps no login')
  t.match(await browser.open(again.url, undefined, form({ name: 'alice', password })), { status: 403 })
})

t.test('login pages: guessed passwords are limited', async (t) => {
  const rig = await startLoginPages(t)
  await enrolled(rig, 'alice')
  const guess = async (name: string, given: string) => {
    const browser = new Browser()
    const page = await browser.open(rig.start)
    return browser.open(page.url, undefined, form({ name, password: given }))
  }
  for (let turn = 0; turn < 5; turn++) {
    t.match(await guess('alice', `wrong ${turn}`), { status: 403, text: /The name or the password is wrong/ })
  }
  const limited = await guess('ALICE', password)
  t.match(limited, { status: 429, text: /Too many wrong passwords/ }, 'even the right password has to wait')
  t.match(limited.headers.get('retry-after'), /^(?:30|2\d)$/)

  const known = await guess('alice', 'x')
  for (let turn = 0; turn < 5; turn++)
    t.match(await guess('nobody', 'wrong'), { status: 403, text: /The name or the password is wrong/ })
  const unknown = await guess('nobody', 'x')
  t.equal(unknown.status, known.status, 'an unknown name is limited in the same way')

  const flood = await Promise.all(Array.from({ length: 20 }, (_, turn) => guess(`user${turn}`, 'x')))
  t.ok(
    flood.some(({ status }) => status === 503 || status === 429),
    'too many hashes at once are rejected',
  )
  t.ok(flood.every(({ status }) => [403, 429, 503].includes(status)))

  const turnedAway = flood.findIndex(({ status }) => status === 503)
  t.match(
    flood[turnedAway]?.text,
    /<p class="warn" role="alert">Too many people are signing in/,
    'a page, with the reason',
  )
  for (let turn = 0; turn < 5; turn++)
    t.match(
      await guess(`user${turnedAway}`, 'x'),
      { status: 403 },
      'a password that was not checked is not counted',
    )
})

t.test('attempts: the wait doubles up to 15 minutes, and a correct password resets it', async (t) => {
  let now = 0
  const attempts = new Attempts(() => now)
  const waits: number[] = []
  for (let turn = 0; turn < 12; turn++) {
    now += attempts.waitSeconds('alice') * 1000
    attempts.begin('alice')
    waits.push(attempts.waitSeconds('alice'))
  }
  t.strictSame(waits, [0, 0, 0, 0, 30, 60, 120, 240, 480, 900, 900, 900])
  t.equal(attempts.waitSeconds('bob'), 0)
  attempts.succeeded('alice')
  t.equal(attempts.waitSeconds('alice'), 0)
})

t.test('login pages: an enrolment link works once, for 24 hours, until a newer one', async (t) => {
  const rig = await startLoginPages(t)
  const key = rig.users.invite('alice')
  const link = enrolmentUrl(rig.origin, key)
  const save = (fields: Record<string, string>) =>
    fetch(`${rig.origin}/login/enrol`, form({ key, password, repeated: password, ...fields }))
  t.equal((await fetch(link)).status, 200)
  t.equal((await fetch(link)).status, 200, 'a program that reads the page does not use the link up')
  t.equal((await save({ password: 'too short' })).status, 422)
  t.equal((await save({ repeated: 'another long password' })).status, 422)
  const both = await Promise.all([save({}), save({ password: `${password}2`, repeated: `${password}2` })])
  t.strictSame(
    both.map(({ status }) => status).toSorted((a, b) => a - b),
    [200, 403],
    'of two requests, one wins',
  )
  t.equal((await fetch(link)).status, 403)
  t.equal((await save({})).status, 403)
  const options = await fetch(`${rig.origin}/login/enrol/options`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ key }),
  })
  t.equal(options.status, 403, 'nor for a passkey')

  const first = rig.users.invite('bob')
  const second = rig.users.invite('bob')
  t.equal(rig.users.invited(first), undefined)
  t.ok(rig.users.invited(second))
  t.equal(rig.users.invited(''), undefined)

  let now = Date.now()
  const users = new Users(join(t.testdir({}), 'users.json'), () => now)
  const late = users.invite('carol')
  now += 24 * 3_600_000
  t.equal(users.invited(late), undefined)
  t.equal(users.enrol(late, { password: 'x' }), undefined)
})

t.test('login pages: a login is bound to the browser that started it, and to this site', async (t) => {
  const rig = await startLoginPages(t)
  await enrolled(rig, 'alice')
  const browser = new Browser()
  const page = await browser.open(rig.start)
  const post = (headers: Record<string, string>, via = browser, url = page.url) =>
    via.open(url, undefined, { ...form({ name: 'alice', password }), headers })
  t.equal((await post({ 'sec-fetch-site': 'cross-site' })).status, 403)
  t.equal((await post({ 'sec-fetch-site': 'same-site' })).status, 403, 'another port of localhost')
  t.equal((await post({ origin: 'https://evil.example' })).status, 403)
  t.match(
    await post({}, new Browser()),
    { status: 400, text: /This sign-in has expired/ },
    'without the cookie',
  )
  const other = new Browser()
  await other.open(rig.start)
  t.match(
    await post({}, other),
    { status: 400, text: /This sign-in has expired/ },
    'with the cookie of another login',
  )
  for (const path of ['', '/options', '/passkey']) {
    const wrongType = await browser.open(`${page.url.href}${path}`, undefined, { method: 'POST', body: 'x' })
    t.equal(wrongType.status, 415, `${path} accepts no plain text, which other sites can send`)
  }
  t.equal((await browser.open(page.url, undefined, { method: 'PUT' })).status, 405)
  t.equal((await post({ origin: rig.origin, 'sec-fetch-site': 'same-origin' })).status, 200)
})

t.test('login pages: the headers and contents of the pages are safe', async (t) => {
  const rig = await startLoginPages(t)
  const browser = new Browser()
  const page = await browser.open(rig.start)
  const csp = page.headers.get('content-security-policy') ?? ''
  t.match(csp, /default-src 'none'/)
  t.match(csp, /script-src 'self'/)
  t.match(csp, /frame-ancestors 'none'/)
  t.notMatch(csp, 'unsafe')
  t.equal(page.headers.get('cache-control'), 'no-store')
  t.equal(page.headers.get('referrer-policy'), 'no-referrer')
  t.equal(page.headers.get('x-content-type-options'), 'nosniff')
  t.notMatch(page.text, /<script(?! type="module" src="\/login\/passkey\.js")/, 'no inline script')
  const echoed = await browser.open(page.url, undefined, form({ name: '"><b>x</b>', password: 'x' }))
  t.notMatch(echoed.text, '<b>')
  const forged = await fetch(rig.start, {
    redirect: 'manual',
    headers: { 'x-forwarded-host': 'evil.example' },
  })
  t.notMatch(forged.headers.get('location'), 'evil.example')
  for (const line of forged.headers.getSetCookie()) t.match(line, /httponly/i)
})

t.test('users: the file is private, and a damaged file is an error', async (t) => {
  const file = join(t.testdir({}), 'login/users.json')
  const users = new Users(file)
  users.invite('alice')
  t.equal(statSync(file).mode & 0o777, 0o600)
  t.equal(new Users(file).all.length, 1, 'it is read again')
  for (const text of ['{', '{}', '{"users":[{}]}', '[]']) {
    writeFileSync(file, text)
    t.throws(() => new Users(file), { message: /is not a file of users/ }, text)
  }
  for (const name of ['', '../x', 'a b', '-a', 'a'.repeat(65), '<b>'])
    t.throws(() => users.invite(name), { message: /must have 1 to 64/ }, name)
  for (let number = 1; number < 200; number++) users.invite(`user${number}`)
  t.throws(() => users.invite('one-more'), { message: /there are already 200 users/ })
  t.ok(users.invite('alice'), 'a new link for a known user')
})

t.test('passwords: salted, and equal in every Unicode form', async (t) => {
  const [first, second] = [await hashPassword('ſécret pässword'), await hashPassword('ſécret pässword')]
  t.not(first, second)
  t.ok(await isPassword('ſe\u0301cret pa\u0308ssword', first))
  t.notOk(await isPassword('other', first))
  t.notOk(await isPassword('', undefined))
})
