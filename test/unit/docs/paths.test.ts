/** Every file and folder named in ARCHITECTURE and CONTRIBUTING exists. */
import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import t from 'tap'

const root = resolve(import.meta.dirname, '../../..')
const path = /`((?:hooks|runtime|schemas|manifests|test|docs)\/[\w./-]*)`/g

for (const page of ['ARCHITECTURE.md', 'CONTRIBUTING.md']) {
  await t.test(`${page}: every path in it exists`, async (t) => {
    const named = [...readFileSync(join(root, page), 'utf8').matchAll(path)].map(([, name = '']) => name)
    t.ok(named.length > 5, 'paths were found')
    for (const name of named) t.ok(existsSync(join(root, name)), name)
  })
}
