/** The JSON limits for a result are the same whether it is small or streamed. */
import t from 'tap'
import { startRawBackend } from '../../helpers/mcp/raw-backend.ts'
import { openSession, post } from '../../helpers/mcp/wire.ts'
import { bareNames, startTestVmcp } from '../../helpers/vmcp/vmcp.ts'

const nested = (n: number) => `${'['.repeat(n)}1${']'.repeat(n)}`
/** Returns a name of `n` bytes, including its quotes. */
const name = (n: number) => `"${'k'.repeat(n - 2)}"`

/** Members of a result, at a limit and beyond it. */
const BOUNDS: Readonly<Record<string, readonly [string, string]>> = {
  depth: [`"structuredContent":{"a":${nested(254)}}`, `"structuredContent":{"a":${nested(255)}}`],
  'a member of the result': [`${name(65_536)}:1`, `${name(65_537)}:1`],
  'a member of structured content': [
    `"structuredContent":{${name(65_536)}:1}`,
    `"structuredContent":{${name(65_537)}:1}`,
  ],
  'a member of metadata': [`"_meta":{${name(65_536)}:1}`, `"_meta":{${name(65_537)}:1}`],
}

t.test('results: the JSON limits do not depend on the size of the result', async (t) => {
  let result = ''
  const backend = await startRawBackend({ responses: { 'tools/call': () => result } })
  const vmcp = await startTestVmcp({ raw: backend.url }, { aggregation: bareNames('raw') })
  t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
  const { headers } = await openSession(vmcp.url)
  const request = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo"}}'
  const call = async (members: string, contentBytes: number) => {
    const content = `"content":[{"type":"text","text":"${'y'.repeat(contentBytes)}"}]`
    result = `{${members},${content}}`
    const { response } = await post(vmcp.url, request, headers)
    return response?.result?.['isError'] === true ? 'an error' : typeof response?.result
  }
  for (const [bound, [within, beyond]] of Object.entries(BOUNDS))
    for (const [size, contentBytes] of [
      ['small', 10],
      ['streamed', 150_000],
      ['large', 600_000],
    ] as const) {
      t.equal(await call(within, contentBytes), 'object', `${size}: ${bound}, within`)
      t.equal(await call(beyond, contentBytes), 'an error', `${size}: ${bound}, beyond`)
    }
})
