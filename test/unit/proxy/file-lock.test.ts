/** Locks between processes: a failed release never fails the work, and transient file system errors are retried. */
import fs, { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { hostname } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import t from 'tap'
import { withFileLock } from '../../../runtime/outgoing/login/file-lock.ts'

const { signal } = new AbortController()

/** Makes the first `count` calls of a function of `node:fs` fail. Returns the number of failed calls. */
function failing(t: Test, name: 'lstatSync' | 'readFileSync' | 'writeFileSync', code: string, count: number) {
  const original = fs[name] as (...args: unknown[]) => unknown
  const failures = { count: 0 }
  const replace = (work: unknown): void => {
    Object.assign(fs, { [name]: work })
    syncBuiltinESMExports()
  }
  replace((...args: unknown[]) => {
    if (!String(args[0]).includes('.lock') || failures.count >= count) return original(...args)
    failures.count++
    throw Object.assign(new Error(code), { code })
  })
  t.teardown(() => replace(original))
  return failures
}

t.test('the result of the work is returned when the lock cannot be released', async (t) => {
  const path = join(t.testdir({}), 'x.lock')
  const result = withFileLock(path, signal, async () => {
    rmSync(path)
    mkdirSync(path)
    return 'done'
  })
  t.equal(await result, 'done')
})

for (const code of ['EMFILE', 'EIO', 'ESTALE']) {
  t.test(`${code} while waiting is retried`, async (t) => {
    const path = join(t.testdir({}), 'x.lock')
    writeFileSync(path, `999999999 ${hostname()} x`)
    const failures = failing(t, 'readFileSync', code, 2)
    const result = withFileLock(path, signal, async () => 'done')
    t.equal(await result, 'done')
    t.equal(failures.count, 2)
  })

  t.test(`${code} while creating the lock does not lead to work without a lock`, async (t) => {
    const folder = t.testdir({})
    const failures = failing(t, 'writeFileSync', code, 2)
    const result = withFileLock(join(folder, 'x.lock'), signal, async () => readdirSync(folder))
    t.strictSame(await result, ['x.lock'])
    t.equal(failures.count, 2)
  })
}

for (const [name, code] of [
  ['lstatSync', 'EIO'],
  ['readFileSync', 'ESTALE'],
  ['writeFileSync', 'EMFILE'],
] as const) {
  t.test(`a persistent ${code} of ${name} is reported with its code`, async (t) => {
    const folder = t.testdir(name === 'writeFileSync' ? {} : { 'x.lock': 'held' })
    failing(t, name, code, Number.POSITIVE_INFINITY)
    await t.rejects(
      withFileLock(join(folder, 'x.lock'), signal, async () => 'never', { longestMs: 10 }),
      {
        code: 'BACKEND_AUTH_FAILED',
        cause: { message: `the lock file cannot be created or read (${code})`, cause: { code } },
      },
    )
  })
}
