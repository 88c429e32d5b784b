/**
 * A private method is never passed by its bare name: the caller would use another `this`, and reading a private field
 * would throw. An arrow function binds it.
 */
import t from 'tap'
import { allSourceFiles } from '../../helpers/source/tree.ts'

const files = allSourceFiles()

t.test('methods: no private method is passed unbound', async (t) => {
  let handed = 0
  for (const [path, { text }] of files) {
    const methods = new Set(
      [...text.matchAll(/^ {2}(?:async )?\*?(#\w+)(?:<[^>]*>)?\(/gm)].map(([, name]) => name),
    )
    for (const { 1: name, index } of text.matchAll(/[(,:?] ?this\.(#\w+)(?=[,)\n])/g)) {
      handed++
      if (methods.has(name))
        t.fail(`${path}:${text.slice(0, index).split('\n').length} hands ${name} over unbound`)
    }
  }
  t.ok(handed > 20, `${handed} private members are handed over`)
})
