/** Programs that send unreadable messages: only the client of the program notices. */
import t from 'tap'
import { openSession, stateless } from '../../../../helpers/mcp/wire.ts'
import { bridgeTo } from './rig.ts'

t.setTimeout(120_000)

/** A program that sends `result` for `initialize`, and an empty result for other requests. */
function introducedBy(result: string): readonly string[] {
  const source = `
    require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
      const { id, method } = JSON.parse(line)
      if (id === undefined) return
      const result = method === 'initialize' ? ${JSON.stringify(result)} : '{}'
      if (method === 'server/discover') console.log(JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32601, message: 'unknown' } }))
      else console.log('{"jsonrpc":"2.0","id":' + JSON.stringify(id) + ',"result":' + result + '}')
    })`
  return ['-e', source]
}

const members = '"protocolVersion":"2025-11-25","serverInfo":{"name":"x","version":"1"}'
const unreadable = {
  'a duplicate member': `{${members},"capabilities":{},"instructions":"a","instructions":"b"}`,
  'a duplicate capability': `{${members},"capabilities":{"tools":{},"tools":{}}}`,
  'too many members': `{${members},"capabilities":{}${Array.from({ length: 10_001 }, (_, i) => `,"m${i}":1`).join('')}}`,
  'an over-long name': `{${members},"capabilities":{},"${'k'.repeat(70_000)}":1}`,
}
for (const [name, result] of Object.entries(unreadable)) {
  t.test(`an initialize result with ${name} leaves the bridge running`, async (t) => {
    const { url } = await bridgeTo(t, introducedBy(result), { probeMs: 50 })
    await openSession(url)
    t.match((await stateless(url, 'tools/list')).response?.error, { code: -32603 })
    t.equal((await fetch(new URL('/health', url))).status, 200)
  })
}
