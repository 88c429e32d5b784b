/** Checks that every YAML block in the documentation parses, and that every complete manifest is valid. */
import { globSync, readFileSync } from 'node:fs'
import t from 'tap'
import { parseAllDocuments } from 'yaml'
import { validateResource } from '../../../hooks/index.ts'

interface Block {
  readonly text: string
  /** File and line. */
  readonly at: string
}

/** Fenced blocks, and indented blocks whose first line is a field without a value, `apiVersion` or `kind`. */
function blocksIn(file: string): readonly Block[] {
  const page = readFileSync(file, 'utf8')
  const at = (index: number): string => `${file}:${page.slice(0, index).split('\n').length}`
  const fenced = [...page.matchAll(/^```yaml\n([\s\S]*?)^```/gm)]
  // A command with its output can follow the YAML.
  const indented = [...page.matchAll(/(?<=\n\n)(?: {4}.*\n|\n(?= {4}(?!\$)))+/g)]
  return [
    ...fenced.map(({ 1: text = '', index }) => ({ text, at: at(index) })),
    ...indented
      .map(({ 0: text, index }) => ({ text: text.replace(/^ {4}/gm, ''), at: at(index) }))
      .filter(({ text }) => /^(?:[a-z]\w*:\n|(?:apiVersion|kind): )/.test(text)),
  ]
}

const blocks = ['README.md', ...globSync('{docs,manifests}/**/*.md')].flatMap(blocksIn)

t.test('documentation: every YAML block parses, and every manifest is valid', async (t) => {
  let manifests = 0
  for (const { text, at } of blocks) {
    const documents = parseAllDocuments(text)
    const errors = documents.flatMap((document) => document.errors.map(({ message }) => message))
    t.same(errors, [], at)
    if (errors.length > 0) continue
    for (const document of documents) {
      const manifest = document.toJS() as { apiVersion?: unknown; metadata?: unknown } | null
      if (manifest?.apiVersion !== 'gatehouse.dev/v1beta1' || !manifest.metadata) continue
      manifests++
      // An excerpt can omit required fields.
      const { violations } = validateResource(manifest)
      t.same(
        violations.filter(({ message }) => !message.startsWith('is required')),
        [],
        at,
      )
    }
  }
  t.ok(blocks.length > 40, `${blocks.length} blocks`)
  t.ok(manifests > 5, `${manifests} manifests`)
})
