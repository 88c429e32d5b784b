import fc from 'fast-check'
import t from 'tap'
import { PAGE_SIZE, renderPage } from '../../../runtime/vmcp/catalog/pages.ts'

function entries(keys: readonly string[]) {
  return [...new Set(keys)]
    .sort()
    .map((key) => ({ key, backend: 'b', original: key, json: Buffer.from(JSON.stringify({ name: key })) }))
}

interface Page {
  readonly tools: { readonly name: string }[]
  readonly nextCursor?: string
}

function page(list: ReturnType<typeof entries>, cursor?: string): Page {
  return JSON.parse(renderPage('tools', list, cursor).toString()) as Page
}

t.test('pages: every item comes once, in order, however long its name', async (t) => {
  const keys = Array.from(
    { length: PAGE_SIZE * 2 + 7 },
    (_, i) => `${i}`.padStart(6, '0') + (i % 3 === 0 ? 'ü'.repeat(400) : ''),
  )
  const list = entries(keys)
  const seen: string[] = []
  let cursor: string | undefined
  do {
    const { tools, nextCursor } = page(list, cursor)
    seen.push(...tools.map(({ name }) => name))
    cursor = nextCursor
    t.ok((cursor?.length ?? 0) <= 512)
  } while (cursor !== undefined)
  t.same(
    seen,
    list.map(({ key }) => key),
  )
})

t.test('pages: an empty cursor is the first page; the end has none', async (t) => {
  t.same(page(entries(['a']), ''), { tools: [{ name: 'a' }] })
  t.same(page([]), { tools: [] })
})

t.test('pages: when the last item is gone, the next page begins after its place', async (t) => {
  const keys = Array.from({ length: PAGE_SIZE + 5 }, (_, i) => `${i}`.padStart(6, '0'))
  const { nextCursor } = page(entries(keys))
  const { tools } = page(entries(keys.filter((key) => key !== '000999')), nextCursor)
  t.equal(tools[0]?.name, '001000')
})

t.test('pages: foreign cursors are refused', async (t) => {
  const list = entries(Array.from({ length: PAGE_SIZE + 1 }, (_, i) => `${i}`))
  const { nextCursor = '' } = page(list)
  t.throws(() => renderPage('prompts', list, nextCursor), { code: 'INVALID_PARAMS' }, 'of another list')
  fc.assert(
    fc.property(fc.string({ minLength: 1 }), (text) => {
      for (const cursor of [text, Buffer.from(text).toString('base64url')]) {
        try {
          renderPage('tools', list, cursor)
        } catch {
          continue
        }
        return cursor === ''
      }
      return true
    }),
  )
})
