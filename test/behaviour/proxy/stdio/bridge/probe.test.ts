/** How the bridge detects the era of its program, also when the program is slow, silent or of neither era. */
import { writeFileSync } from 'node:fs'
import t from 'tap'
import { openSession, stateless } from '../../../../helpers/mcp/wire.ts'
import { askable, bridgeTo, program } from './rig.ts'

t.setTimeout(120_000)

t.test('session program: an inconclusive response causes a second request', async (t) => {
  const { url } = await bridgeTo(t, [program, 'session'])
  const params = { name: 'test_elicitation', arguments: { message: 'who?' } }
  const first = await stateless(url, 'tools/call', params, { capabilities: askable })
  const more = { requestState: first.response?.result?.['requestState'], inputResponses: {} }
  const second = await stateless(url, 'tools/call', { ...params, ...more }, { capabilities: askable })
  t.match(second.response?.result, { resultType: 'input_required', inputRequests: { 'ask-1': {} } })
})

t.test('a program that is silent before initialize is treated as session-era', async (t) => {
  const silent = `
    const say = (id, result) => console.log(JSON.stringify({ jsonrpc: '2.0', id, result }))
    let open = false
    require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
      const { id, method } = JSON.parse(line)
      if (method === 'initialize') {
        open = true
        say(id, { protocolVersion: '2024-11-05', capabilities: { tools: {} }, serverInfo: { name: 'silent', version: '1' } })
      } else if (open && id !== undefined) say(id, { tools: [] })
    })`
  const { url } = await bridgeTo(t, ['-e', silent], { probeMs: 50 })
  t.match((await stateless(url, 'tools/list')).response?.result, { tools: [], resultType: 'complete' })
})

t.test('a program of neither era: its own rejection of initialize reaches the client', async (t) => {
  const refuses = `
    require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
      const { id } = JSON.parse(line)
      if (id !== undefined) console.log(JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32050, message: 'not today' } }))
    })`
  const { url } = await bridgeTo(t, ['-e', refuses])
  t.match((await openSession(url)).initialized.error, { code: -32050, message: 'not today' })
  const response = await stateless(url, 'tools/list')
  t.match(response.response?.error, { code: -32603 })
})

t.test('stateless program: a slow one is asked again before it is treated as session-era', async (t) => {
  // Each process is silent until the second question, as if it were still starting.
  const folder = t.testdir({})
  const slow = `
    const fs = require('node:fs')
    const marks = ${JSON.stringify(folder)}
    require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
      const { id, method } = JSON.parse(line)
      const say = (message) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, ...message }) + '\\n')
      if (method === 'initialize') { fs.writeFileSync(marks + '/refused', ''); return say({ error: { code: -32601, message: 'no sessions' } }) }
      if (id === undefined || !fs.existsSync(marks + '/refused')) return
      if (method === 'server/discover') return say({ result: { supportedVersions: ['2026-07-28'], capabilities: { tools: {} } } })
      say({ result: { resultType: 'complete', tools: [] } })
    })`
  const { url } = await bridgeTo(t, ['-e', slow], { probeMs: 2_000 })
  const { response } = await stateless(url, 'tools/list')
  t.match(response?.result, { tools: [] })
})

t.test('a program of neither era is probed again by the next request', async (t) => {
  const folder = t.testdir({})
  const broken = `
    const fs = require('node:fs')
    require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
      const { id, method } = JSON.parse(line)
      if (id === undefined) return
      const works = fs.existsSync(${JSON.stringify(folder)} + '/works')
      const result = method === 'server/discover' ? { supportedVersions: ['2026-07-28'], capabilities: {} } : { resultType: 'complete', tools: [] }
      process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, ...(works ? { result } : { error: { code: -32603, message: 'no database' } }) }) + '\\n')
    })`
  const { url } = await bridgeTo(t, ['-e', broken])
  t.match((await stateless(url, 'tools/list')).response, { error: { code: Number } })
  writeFileSync(`${folder}/works`, '')
  t.match((await stateless(url, 'tools/list')).response?.result, { tools: [] })
})
