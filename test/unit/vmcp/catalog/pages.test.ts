import fc from 'fast-check'
import { readFileSync } from 'node:fs'
import t from 'tap'
import { type Cursors, makeCursors } from '../../../../runtime/vmcp/catalog/cursors.ts'
import { pageSize, renderPage as render } from '../../../../runtime/vmcp/catalog/pages.ts'

const cursors = makeCursors(() => undefined)

function entries(keys: readonly string[]) {
  return [...new Set(keys)]
    .sort()
    .map((key) => ({ key, backend: 'b', original: key, json: Buffer.from(JSON.stringify({ name: key })) }))
}

function renderPage(
  kind: 'tools' | 'prompts',
  list: ReturnType<typeof entries>,
  cursor: string | undefined,
  seals: Cursors,
): Buffer {
  return render(kind, list, { era: 'session', cursor, cursors: seals })
}

interface Page {
  readonly tools: { readonly name: string }[]
  readonly nextCursor?: string
}

function page(list: ReturnType<typeof entries>, cursor?: string): Page {
  return JSON.parse(renderPage('tools', list, cursor, cursors).toString()) as Page
}

t.test('pages: every item appears once, in order, even with a very long name', async (t) => {
  const keys = Array.from(
    { length: pageSize * 2 + 7 },
    (_, i) => `${i}`.padStart(6, '0') + (i % 3 === 0 ? '語'.repeat(i % 2 === 0 ? 400 : 250) : ''),
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

t.test('pages: an empty cursor returns the first page, and the last page has no cursor', async (t) => {
  t.same(page(entries(['a']), ''), { tools: [{ name: 'a' }] })
  t.same(page([]), { tools: [] })
})

t.test('pages: after the last item of a page is removed, the next page starts at its position', async (t) => {
  const keys = Array.from({ length: pageSize + 5 }, (_, i) => `${i}`.padStart(6, '0'))
  const { nextCursor } = page(entries(keys))
  const { tools } = page(entries(keys.filter((key) => key !== '000999')), nextCursor)
  t.equal(tools[0]?.name, '001000')
})

t.test('pages: foreign cursors are rejected', async (t) => {
  const list = entries(Array.from({ length: pageSize + 1 }, (_, i) => `${i}`))
  const { nextCursor = '' } = page(list)
  t.throws(
    () => renderPage('prompts', list, nextCursor, cursors),
    { code: 'INVALID_PARAMS' },
    'from another list',
  )
  fc.assert(
    fc.property(fc.string({ minLength: 1 }), (text) => {
      for (const cursor of [text, Buffer.from(text).toString('base64url')]) {
        try {
          renderPage('tools', list, cursor, cursors)
        } catch {
          continue
        }
        return cursor === ''
      }
      return true
    }),
  )
})

t.test('pages: a cursor reveals no name, and no two cursors are equal', async (t) => {
  const list = entries(Array.from({ length: pageSize + 1 }, (_, i) => `secret-${`${i}`.padStart(6, '0')}`))
  const cursorOf = () => page([...list]).nextCursor ?? ''
  t.notMatch(Buffer.from(cursorOf(), 'base64url').toString('latin1'), 'secret')
  t.not(cursorOf(), cursorOf())
})

t.test(
  'pages: replicas with the same secret read each other’s cursors; other replicas continue by position',
  async (t) => {
    const keys = Array.from({ length: pageSize + 5 }, (_, i) => `${i}`.padStart(6, '0'))
    const shortened = entries(keys.filter((key) => key !== '000003'))
    const first = (from: typeof cursors, to: typeof cursors) => {
      const { nextCursor } = JSON.parse(
        renderPage('tools', entries(keys), undefined, from).toString(),
      ) as Page
      const next = JSON.parse(renderPage('tools', shortened, nextCursor, to).toString()) as Page
      return next.tools[0]?.name
    }
    const replica = () => makeCursors(() => 'one secret')
    t.equal(first(replica(), replica()), '001000')
    t.equal(
      first(
        replica(),
        makeCursors(() => 'another'),
      ),
      '001001',
      'a list that has become shorter',
    )
    let secret: string | undefined
    const late = makeCursors(() => secret)
    const { nextCursor } = JSON.parse(renderPage('tools', entries(keys), undefined, late).toString()) as Page
    secret = 'known by now'
    const next = JSON.parse(renderPage('tools', shortened, nextCursor, late).toString()) as Page
    t.equal(next.tools[0]?.name, '001000', 'its own key still opens it')
  },
)

t.test("pages: only session clients get an item's separate session form", async (t) => {
  const plain = entries(['a'])
  const two = [{ ...plain[0]!, sessionJson: Buffer.from('{"name":"a","form":"session"}') }]
  const first = { cursor: undefined, cursors }
  t.match(render('tools', two, { era: 'session', ...first }).toString(), '"form":"session"')
  t.equal(render('tools', two, { era: 'stateless', ...first }).toString(), '{"tools":[{"name":"a"}]}')
  t.equal(
    render('tools', plain, { era: 'session', ...first }),
    render('tools', plain, { era: 'stateless', ...first }),
    'one page for both eras if the item has one form',
  )
})

t.test('pages: a cursor of the previous build continues at its position', async (t) => {
  const file = new URL('../../../fixtures/previous-build.json', import.meta.url)
  const { secret, cursor: recorded } = JSON.parse(readFileSync(file, 'utf8'))
  const { after, position } = recorded
  t.same(makeCursors(() => secret).read('tools', recorded.cursor), { after, position })
  t.same(cursors.read('tools', recorded.cursor), { after: undefined, position })
})
