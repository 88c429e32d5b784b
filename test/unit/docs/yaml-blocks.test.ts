/** Checks that every YAML block in the documentation parses. */
import { globSync, readFileSync } from 'node:fs'
import t from 'tap'
import { parseAllDocuments } from 'yaml'

t.test('documentation: every YAML block parses', async (t) => {
  let blocks = 0
  for (const file of ['README.md', ...globSync('{docs,manifests}/**/*.md')]) {
    const page = readFileSync(file, 'utf8')
    for (const { 1: block = '', index } of page.matchAll(/^```yaml\n([\s\S]*?)^```/gm)) {
      blocks++
      const errors = parseAllDocuments(block).flatMap((document) =>
        document.errors.map(({ message }) => message),
      )
      t.same(errors, [], `${file}:${page.slice(0, index).split('\n').length}`)
    }
  }
  t.ok(blocks > 20, `${blocks} blocks`)
})
