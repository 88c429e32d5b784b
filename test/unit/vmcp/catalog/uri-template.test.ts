import fc from 'fast-check'
import t from 'tap'
import { compileTemplate, maxMatchWork } from '../../../../runtime/vmcp/catalog/items/uri-template.ts'

const plenty = () => ({ left: maxMatchWork })

t.test('templates: expressions match what their operator can produce', async (t) => {
  const cases: [string, string, boolean][] = [
    ['a://{x}', 'a://1', true],
    ['a://{x}', 'a://1/2', false],
    ['a://{x}/b', 'a://1/b', true],
    ['a://{x}/b', 'a:///b', true],
    ['a://{+x}', 'a://1/2?c#d', true],
    ['a://h{/x*}', 'a://h/1/2', true],
    ['a://h{?q}', 'a://h', true],
    ['a://h{?q}', 'a://h?q=1', true],
    ['a://h{#f}', 'a://h#part', true],
    ['a://{x}{y}z', 'a://12z', true],
    ['a://b', 'a://b', true],
    ['a://b', 'a://bc', false],
    ['a://{', 'a://{', true],
    ['a://{}', 'a://x', false],
  ]
  for (const [template, uri, expected] of cases)
    t.equal(compileTemplate(template)(uri, plenty()), expected, `${template} ${uri}`)
})

t.test('templates: an expansion always matches its template', async () => {
  const literal = fc.stringMatching(/^[a-z0-9:/.-]{0,8}$/)
  const value = fc.stringMatching(/^[A-Za-z0-9%~_-]{0,8}$/)
  fc.assert(
    fc.property(fc.array(fc.tuple(literal, value), { maxLength: 6 }), (parts) => {
      const template = parts.map(([text], i) => `${text}{v${i}}`).join('')
      const uri = parts.map(([text, each]) => text + each).join('')
      return compileTemplate(template)(uri, plenty())
    }),
  )
})

t.test('templates: hostile templates cost at most the budget of a look-up', async (t) => {
  const work = plenty()
  const uri = `a://${'a'.repeat(8_000)}`
  const literals = compileTemplate(`a://{+x}${'a'.repeat(2_000)}{+x}${'a'.repeat(20)}!`)
  const expressions = compileTemplate(`a://${'{+x}a'.repeat(30)}!`)
  for (let round = 0; round < 100; round++) {
    t.notOk(literals(uri, work))
    t.notOk(expressions(uri, work))
  }
  t.ok(work.left < 0, 'the budget was used up')
  t.ok(work.left > -4 * uri.length - 4, 'and not much more')
  t.notOk(compileTemplate('a://{x}')('a://b', work), 'nothing matches without budget')
})

t.test('templates: a template with too many expressions matches only itself', async (t) => {
  const template = `a://${'{+x}a'.repeat(33)}`
  t.notOk(compileTemplate(template)(`a://${'a'.repeat(100)}`, plenty()))
  t.ok(compileTemplate(template)(template, plenty()))
})
