/**
 * Every section of the specification that a comment or a page cites exists:
 * `docs/reference/specification/<page>.md#<anchor>`.
 */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import t from 'tap'
import { anchors, specificationPages } from '../../requirements/pages.ts'

const root = resolve(import.meta.dirname, '../../..')

await t.test('specification: citations in sources and docs resolve', async (t) => {
  const known = anchors()
  const pages = specificationPages()
  const files = execFileSync('git', ['ls-files', '*.ts', '*.md', '*.json'], { cwd: root, encoding: 'utf8' })
  let found = 0
  for (const file of files.trim().split('\n')) {
    if (file === 'test/unit/docs/citations.test.ts') continue
    const text = readFileSync(join(root, file), 'utf8')
    for (const [cited, page = '', anchor] of text.matchAll(
      /docs\/reference\/specification\/([\w-]+\.md)(?:#([\w.-]*[\w-]))?/g,
    )) {
      found += 1
      if (!pages.has(page) || (anchor !== undefined && !known.has(`${page}#${anchor}`)))
        t.fail(`${file} cites ${cited}`)
    }
  }
  t.ok(found > 150, `${found} citations`)
})

await t.test('specification: no citation refers to a document by number', async (t) => {
  const files = execFileSync('git', ['ls-files', 'hooks', 'runtime', 'schemas'], {
    cwd: root,
    encoding: 'utf8',
  })
  for (const file of files.trim().split('\n')) {
    if (!file.endsWith('.ts') || file.includes('generated/')) continue
    if (/spec document \d/.test(readFileSync(join(root, file), 'utf8'))) t.fail(file)
  }
})
