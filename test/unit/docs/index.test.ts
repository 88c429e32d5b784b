/** docs/README.md lists every page, and every link between pages resolves. */
import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import t from 'tap'

const root = join(import.meta.dirname, '../../..')
const docs = join(root, 'docs')
const index = join(docs, 'README.md')
const pages = readdirSync(docs, { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.md'))
  .map((file) => join(docs, file))
const others = ['README.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md', 'SECURITY.md', 'manifests/chart/README.md']

/** Returns the files that a page links to, without fragments; web addresses are not checked. */
function linksOf(page: string): string[] {
  return [...readFileSync(page, 'utf8').matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, target = '']) => target.replace(/#.*$/, ''))
    .filter((target) => target !== '' && !/^[a-z]+:/.test(target))
    .map((target) => join(dirname(page), target))
}

t.test('the index lists each page, or the index of its folder', async (t) => {
  const listed = new Set(linksOf(index))
  for (const page of pages) {
    const reached = [page, join(dirname(page), 'README.md')].some((at) => at !== index && listed.has(at))
    t.ok(page === index || reached, relative(root, page))
  }
})

for (const page of [...pages, ...others.map((file) => join(root, file))]) {
  t.test(`links of ${relative(root, page)}`, async (t) => {
    for (const target of linksOf(page)) t.ok(existsSync(target), relative(root, target))
  })
}
