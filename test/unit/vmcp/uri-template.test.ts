import fc from 'fast-check'
import t from 'tap'
import { compileTemplate } from '../../../runtime/vmcp/catalog/uri-template.ts'

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
    t.equal(compileTemplate(template)(uri), expected, `${template} ${uri}`)
})

t.test('templates: an expansion always matches its template', async () => {
  const literal = fc.stringMatching(/^[a-z0-9:/.-]{0,8}$/)
  const value = fc.stringMatching(/^[A-Za-z0-9%~_-]{0,8}$/)
  fc.assert(
    fc.property(fc.array(fc.tuple(literal, value), { maxLength: 6 }), (parts) => {
      const template = parts.map(([text], i) => `${text}{v${i}}`).join('')
      const uri = parts.map(([text, each]) => text + each).join('')
      return compileTemplate(template)(uri)
    }),
  )
})

t.test('templates: a hostile one costs no more than its length', async (t) => {
  const matches = compileTemplate(`a://${'{+x}a'.repeat(300)}!`)
  t.notOk(matches(`a://${'a'.repeat(5_000)}`))
})
