/** The folder of `gatehouse import --save`: its permissions, and atomic writes. */
import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { saveFolder } from '../../../runtime/toolkit/client-files/save.ts'

const files = [
  { name: 'secrets.yaml', text: 'canary', secret: true },
  { name: 'servers.yaml', text: 'open', secret: false },
]

t.test('save: a file with secrets becomes readable by its owner only, even if its text is unchanged', (t) => {
  const folder = join(t.testdir({}), 'out')
  saveFolder(folder, files, { force: false })
  chmodSync(join(folder, 'secrets.yaml'), 0o644)
  t.strictSame(saveFolder(folder, files, { force: false }).written, [])
  t.equal(statSync(join(folder, 'secrets.yaml')).mode & 0o777, 0o600)
  t.end()
})

t.test('save: a failed write changes nothing and leaves no temporary file', (t) => {
  const folder = t.testdir({ 'secrets.yaml': 'before' })
  mkdirSync(join(folder, 'servers.yaml'))
  t.throws(() => saveFolder(folder, files, { force: true }), /servers\.yaml is a folder; nothing was written/)
  t.strictSame(readdirSync(folder), ['secrets.yaml', 'servers.yaml'])
  t.equal(readFileSync(join(folder, 'secrets.yaml'), 'utf8'), 'before')
  t.throws(
    () => saveFolder(join(folder, 'secrets.yaml'), files, { force: true }),
    /a file with this name already exists/,
  )
  t.end()
})
