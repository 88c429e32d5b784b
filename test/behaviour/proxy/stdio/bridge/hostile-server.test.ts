/** Programs that send unreadable messages or exit at a bad moment: only the program's client is affected. */
import { writeFileSync } from 'node:fs'
import t from 'tap'
import { openSession, stateless } from '../../../../helpers/mcp/wire.ts'
import { askable, bridgeTo } from './rig.ts'

t.setTimeout(120_000)

/**
 * Returns the arguments for a program that answers `initialize` with `result`, and other requests with an empty result.
 */
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
  'deep nesting': `{${members},"capabilities":{},"a":${'['.repeat(300)}${']'.repeat(300)}}`,
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

t.test('a program that exits before its question is answered leaves the bridge running', async (t) => {
  // A child process keeps standard output open, so that the bridge notices the program's exit late.
  const folder = t.testdir({})
  const program = `
    const say = (message) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\\n')
    const end = () => require('node:fs').existsSync(${JSON.stringify(`${folder}/asked`)}) ? process.exit(0) : setTimeout(end, 20)
    require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
      const { id, method } = JSON.parse(line)
      if (method === 'initialize')
        say({ id, result: { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 'x', version: '1' } } })
      else if (method === 'tools/call') {
        say({ id: 'q1', method: 'elicitation/create', params: { message: String(process.pid), requestedSchema: { type: 'object', properties: {} } } })
        require('node:child_process').spawn('sleep', ['3'], { stdio: ['ignore', 'inherit', 'inherit'], detached: true }).unref()
        end()
      }
    })`
  const { url } = await bridgeTo(t, ['-e', program])
  const params = { name: 'ask', arguments: {} }
  const asked = await stateless(url, 'tools/call', params, { capabilities: askable })
  writeFileSync(`${folder}/asked`, '')
  const pid = Number(/"message":"(\d+)"/.exec(asked.text)?.[1])
  while (isRunning(pid)) await new Promise((resolve) => setTimeout(resolve, 20))
  const requestState = asked.response?.result?.['requestState']
  const inputResponses = { 'ask-1': { action: 'accept', content: {} } }
  const answered = await stateless(
    url,
    'tools/call',
    { ...params, requestState, inputResponses },
    { capabilities: askable },
  )
  t.match(answered.response?.error, { message: /the server has stopped/ })
})

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}
