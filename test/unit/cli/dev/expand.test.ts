/** Expansion of values, commands and arguments, which must match the kubelet's. */
import t from 'tap'
import { expand } from '../../../../runtime/toolkit/local/pods.ts'

const known = { A: 'one', B: '$(A)', EMPTY: '' }

/** Text -> its expansion by the rules of Kubernetes core/v1. */
const rows: readonly (readonly [string, string])[] = [
  ['plain', 'plain'],
  ['$(A)', 'one'],
  ['x$(A)y$(A)', 'xoneyone'],
  ['$(B)', '$(A)'],
  ['$(EMPTY)', ''],
  ['$(UNKNOWN)', '$(UNKNOWN)'],
  ['$$(A)', '$(A)'],
  ['$$$(A)', '$one'],
  ['$$$$(A)', '$$(A)'],
  ['pa$$word', 'pa$word'],
  ['pa$word', 'pa$word'],
  ['$', '$'],
  ['$$', '$'],
  ['$(', '$('],
  ['$((((A)', '$((((A)'],
  ['$(A$(A)', '$(A$(A)'],
  ['$()', '$()'],
  ['${A}', '${A}'],
]

t.test('expand: every form is expanded', async (t) => {
  for (const [text, expected] of rows) t.equal(expand(text, known), expected, text)
})
