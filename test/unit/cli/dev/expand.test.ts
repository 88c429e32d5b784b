/** What the kubelet makes of values, commands and arguments, here as in a cluster. */
import t from 'tap'
import { expand } from '../../../../runtime/toolkit/local/pods.ts'

const known = { A: 'one', B: '$(A)', EMPTY: '' }

/** Text -> what it becomes; by the rules of Kubernetes core/v1. */
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

t.test('expand: every form', async (t) => {
  for (const [text, expected] of rows) t.equal(expand(text, known), expected, text)
})
