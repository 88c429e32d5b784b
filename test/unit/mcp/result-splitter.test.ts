/** A large result that is streamed while it arrives, in an envelope that must be repaired. */
import t from 'tap'
import { ResultSplitter } from '../../../runtime/mcp/index.ts'

function split(message: string) {
  const passed: string[] = []
  const splitter = new ResultSplitter({
    id: '7',
    replaces: false,
    largeBytes: 16,
    passage: {
      era: 'session',
      begin: () => true,
      write(parts) {
        passed.push(...parts.map(String))
        return undefined
      },
    },
  })
  const text = Buffer.from(message)
  for (let from = 0; from < text.length; from += 5) void splitter.push(text.subarray(from, from + 5))
  return { message: splitter.end(), passed: passed.join(''), isGivenUp: splitter.isGivenUp }
}

const blob = 'x'.repeat(40)
const result = `{"isError":false,"structuredContent":{"blob":"${blob}"}}`

t.test('an id as a string and members that are null are repaired after the result', async (t) => {
  for (const rest of ['"id":7', '"id":"7"', '"id":7,"error":null,"method":null']) {
    const { message, passed } = split(`{"jsonrpc":"2.0","result":${result},${rest}}`)
    t.match(message, { kind: 'result', id: '7', passed: { names: ['structuredContent'] } }, rest)
    t.match(passed, blob)
  }
})

t.test('another id, or an error next to the result, aborts the response', async (t) => {
  for (const rest of ['"id":8', '"id":"8"', '"id":7.5', '"id":7,"error":{"code":1,"message":"x"}'])
    t.throws(() => split(`{"jsonrpc":"2.0","result":${result},${rest}}`), rest)
})
