/** Input in the form of a server, and text of servers on a terminal. */
import t from 'tap'
import { JsonObject } from '../../../runtime/mcp/index.ts'
import { fieldsOf, valueFor } from '../../../runtime/tools/shell/form.ts'
import { forTerminal, oneLine } from '../../../runtime/toolkit/terminal/plain-text.ts'
import { ProgressLine } from '../../../runtime/tools/shell/progress.ts'

const schema = {
  type: 'object',
  required: ['name', 'age'],
  properties: {
    name: { type: 'string', minLength: 2, maxLength: 4 },
    age: { type: 'integer', minimum: 0, maximum: 150 },
    ok: { type: 'boolean', default: true },
    colour: {
      type: 'string',
      oneOf: [
        { const: 'r', title: 'Red' },
        { const: 'g', title: 'Green' },
      ],
    },
    size: { type: 'string', enum: ['s', 'm'], enumNames: ['Small', 'Medium'] },
    tags: { type: 'array', maxItems: 2, items: { type: 'string', enum: ['a', 'b', 'c'] } },
    limit: { anyOf: [{ $ref: '#/$defs/Limit' }, { type: 'null' }] },
    broken: 7,
  },
  $defs: { Limit: { type: 'integer' } },
}

await t.test('a form: values by type, bounds and choices', async (t) => {
  const fields = fieldsOf(new JsonObject(Buffer.from(JSON.stringify(schema))))
  const field = (name: string) => {
    const found = fields.find((one) => one.name === name)
    if (!found) throw new Error(name)
    return found
  }
  t.equal(fields.length, 7, 'members without a schema are no fields')
  t.strictSame(
    field('colour').options.map(({ title }) => title),
    ['Red', 'Green'],
  )
  t.strictSame(
    field('size').options.map(({ title }) => title),
    ['Small', 'Medium'],
  )
  for (const [name, text, expected] of [
    ['name', 'ann', { value: 'ann' }],
    ['name', '', { problem: 'a value is required' }],
    ['name', 'a', { problem: 'at least 2 characters' }],
    ['name', 'annie', { problem: 'at most 4 characters' }],
    ['age', '42', { value: 42 }],
    ['age', '4.2', { problem: 'must be a whole number' }],
    ['age', 'old', { problem: 'must be a number' }],
    ['age', '151', { problem: 'at most 150' }],
    ['ok', '', { value: true }],
    ['ok', 'N', { value: false }],
    ['ok', 'maybe', { problem: 'answer yes or no' }],
    ['colour', 'g', { value: 'g' }],
    ['colour', 'Green', { problem: /one of the values above/ }],
    ['colour', '', {}],
    ['limit', '5', { value: 5 }],
    ['limit', '', {}],
    ['tags', 'a, c', { value: ['a', 'c'] }],
    ['tags', 'a,x', { problem: /one of the values above/ }],
    ['tags', 'a,b,c', { problem: 'at most 2 values' }],
  ] as const) {
    t.match(valueFor(field(name), text), expected, `${name}: ${text}`)
  }
})

await t.test('text of a server cannot control the terminal', async (t) => {
  t.equal(forTerminal('a\tb\r\nc\u001b]52;c;eA==\u0007'), 'a\tb\nc')
  t.equal(forTerminal('\u202eevil\u2069 \u009b2J'), '\ufffdevil\ufffd ')
  t.equal(oneLine('a\n\n  b'), 'a b')
  t.equal(oneLine('x'.repeat(600)).length, 500)
})

await t.test('progress: one line on a terminal, a line for each step elsewhere', async (t) => {
  const written: string[] = []
  const plain = new ProgressLine({ write: (text) => written.push(text) })
  plain.show({ progress: 1, total: 4, message: 'on\n it\u001b[2J\u202e' })
  plain.show({ progress: 1, total: 4, message: 'on\n it\u001b[2J\u202e' })
  plain.show({ progress: 2, total: undefined, message: undefined })
  plain.clear()
  t.strictSame(written.splice(0), ['1/4 25 % on it\ufffd\n', '2\n'])
  const screen = new ProgressLine({ isTTY: true, columns: 12, write: (text) => written.push(text) })
  screen.show({ progress: 1, total: 4, message: 'a long message' })
  screen.printAbove('a line')
  screen.clear()
  const line = '1/4 25 % a '
  t.strictSame(written, [`\r\u001b[K${line}`, '\r\u001b[K', 'a line\n', line, '\r\u001b[K'])
})
