/** Several processes with one persisted login, at a provider that rotates refresh tokens and detects reuse. */
import { execFileSync } from 'node:child_process'
import { lstatSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { withFileLock } from '../../../../runtime/outgoing/login/file-lock.ts'
import { type KeptLogins, startKeptLogins } from '../../../helpers/proxy/kept-login.ts'

const lifeSec = 60

/** Revokes the family at the second use of a refresh token, as RFC 9700 requires. */
async function startRotating(): Promise<{ kept: KeptLogins; isRevoked: () => boolean }> {
  let generation = 0
  let revoked = false
  const kept = await startKeptLogins(
    ({ form }) => {
      if (form.get('refresh_token') !== `rt-${generation}`) revoked = true
      if (revoked) return { status: 400, body: { error: 'invalid_grant' } }
      generation++
      return {
        body: {
          access_token: `at-${generation}`,
          refresh_token: `rt-${generation}`,
          token_type: 'Bearer',
          expires_in: lifeSec,
        },
      }
    },
    { tokens: { expiresAt: 1_800_000_000_000 + lifeSec * 1000 } },
  )
  return { kept, isRevoked: () => revoked }
}

await t.test('two processes: 1,000 calls over 50 expirations need no second login', async (t) => {
  const { kept, isRevoked } = await startRotating()
  t.teardown(() => kept.close())
  const processes = [kept.open(), kept.open()]
  for (const login of processes) await login.start()
  for (let expiration = 1; expiration <= 50; expiration++) {
    kept.pass(lifeSec * 1000)
    const calls = await Promise.all(
      Array.from({ length: 20 }, async (_, index) => (await processes[index % 2]?.token())?.value),
    )
    t.same(new Set(calls), new Set([`at-${expiration}`]))
  }
  t.equal(kept.asked(), 50, 'each token was renewed once')
  t.notOk(isRevoked())
})

await t.test('a token that the target rejects is renewed once for both processes', async (t) => {
  const { kept, isRevoked } = await startRotating()
  t.teardown(() => kept.close())
  const [a, b] = [kept.open(), kept.open()]
  await Promise.all([a.start(), b.start()])
  // The clock distinguishes older files from newer ones.
  kept.pass(1)
  const url = 'http://127.0.0.1:1/mcp'
  await Promise.all([
    a.refused({ status: 401, challenge: undefined, url, usedToken: 'at-0' }),
    b.refused({ status: 401, challenge: undefined, url, usedToken: 'at-0' }),
  ])
  t.match([await a.token(), await b.token()], [{ value: 'at-1' }, { value: 'at-1' }])
  t.notOk(isRevoked())
})

await t.test(
  'a login renewed after the clock was set back counts as newer for the other processes',
  async (t) => {
    const { kept, isRevoked } = await startRotating()
    t.teardown(() => kept.close())
    const [a, b, c] = [kept.open(), kept.open(), kept.open()]
    await Promise.all([a.start(), b.start(), c.start()])
    kept.pass(lifeSec * 1000)
    for (const login of [a, b, c]) t.match(await login.token(), { value: 'at-1' })
    kept.pass(-30_000)
    for (const login of [b, c]) {
      await login.refused({
        status: 401,
        challenge: undefined,
        url: 'http://127.0.0.1:1/mcp',
        usedToken: 'at-1',
      })
      t.match(await login.token(), { value: 'at-2' })
    }
    t.equal(kept.asked(), 2)
    t.notOk(isRevoked())
  },
)

await t.test('a rejected process keeps the file that another process renewed', async (t) => {
  let isGood = true
  const kept = await startKeptLogins(() =>
    isGood
      ? { body: { access_token: 'at-1', refresh_token: 'rt-1', token_type: 'Bearer', expires_in: 7_200 } }
      : { status: 400, body: { error: 'invalid_grant' } },
  )
  t.teardown(() => kept.close())
  const [a, b] = [kept.open(), kept.open()]
  await Promise.all([a.start(), b.start()])
  kept.pass(3_600_000)
  t.match(await a.token(), { value: 'at-1' })
  isGood = false
  t.match(await b.token(), { value: 'at-1' }, 'read from the file, without a request')
  t.equal(kept.asked(), 1)
  t.ok(kept.isKept())
})

await t.test('a process whose login has ended adopts the new login of another process', async (t) => {
  let response: { status?: number; body: object } = { status: 400, body: { error: 'invalid_grant' } }
  const kept = await startKeptLogins(() => response)
  t.teardown(() => kept.close())
  const a = kept.open()
  const b = kept.open()
  await Promise.all([a.start(), b.start()])
  kept.pass(3_600_000)
  await t.rejects(async () => a.token(), { code: 'BACKEND_AUTH_FAILED' })
  response = { body: { access_token: 'at-1', token_type: 'Bearer', expires_in: 3_600 } }
  t.match(await b.token(), { value: 'at-1' })
  t.match(await a.token(), { value: 'at-1' })
})

await t.test('lock: a path that is not a readable file is an immediate error', async (t) => {
  const dir = t.testdir({ folder: {}, target: 'x' })
  const { signal } = new AbortController()
  symlinkSync(join(dir, 'nowhere'), join(dir, 'dangling'))
  symlinkSync(join(dir, 'target'), join(dir, 'link'))
  execFileSync('mkfifo', [join(dir, 'pipe')])
  for (const name of ['folder', 'dangling', 'link', 'pipe']) {
    const path = join(dir, name)
    await t.rejects(
      withFileLock(path, signal, async () => 'never'),
      {
        code: 'BACKEND_AUTH_FAILED',
        message: /cannot be locked/,
        cause: { message: `${path} is not a readable file; remove it` },
      },
      name,
    )
    t.ok(lstatSync(path), 'the file is still there')
  }
  mkdirSync(join(dir, 'free.lock.guard'))
  writeFileSync(join(dir, 'free.lock'), '999999999 elsewhere x')
  await t.rejects(
    withFileLock(join(dir, 'free.lock'), signal, async () => 'never', { longestMs: 10 }),
    { code: 'BACKEND_AUTH_FAILED' },
    'the guard of an abandoned lock',
  )
})

await t.test('lock: one holder at a time, and the lock of a dead process is taken over', async (t) => {
  const dir = t.testdir({})
  const path = join(dir, 'locks', 'x.lock')
  const { signal } = new AbortController()
  let running = 0
  const results = await Promise.all(
    Array.from({ length: 5 }, (_, index) =>
      withFileLock(path, signal, async () => {
        t.equal(++running, 1)
        await new Promise((resolve) => setImmediate(resolve))
        running--
        return index
      }),
    ),
  )
  t.same(results, [0, 1, 2, 3, 4])
  t.same(readdirSync(join(dir, 'locks')), [], 'no file is left')

  const { hostname } = await import('node:os')
  writeFileSync(path, `999999999 ${hostname()} x`)
  t.equal(await withFileLock(path, signal, async () => 'taken'), 'taken')
  writeFileSync(path, '1 another-machine x')
  t.equal(
    await withFileLock(path, signal, async () => 'taken', { longestMs: 10 }),
    'taken',
    'seen for too long',
  )
  t.same(readdirSync(join(dir, 'locks')), [])

  mkdirSync(join(dir, 'file'))
  writeFileSync(join(dir, 'file', 'f'), '')
  t.equal(await withFileLock(join(dir, 'file', 'f', 'x.lock'), signal, async () => 'without'), 'without')

  writeFileSync(path, `${process.pid} ${hostname()} x`)
  const stop = new AbortController()
  const waiting = withFileLock(path, stop.signal, async () => 'never')
  stop.abort(new Error('the end'))
  await t.rejects(waiting, { message: 'the end' })
})
