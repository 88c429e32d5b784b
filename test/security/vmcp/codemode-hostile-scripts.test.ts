/**
 * Hostile scripts: they end, the server survives, and other requests are answered meanwhile. Tests that need it shorten
 * the deadline of a script.
 */
import t, { type Test } from 'tap'
import type { OperationContext } from '../../../runtime/vmcp/model/operation.ts'
import { resultOutcome } from '../../../runtime/vmcp/model/outcome.ts'
import { startFixture } from '../../helpers/mcp/fixture-server/index.ts'
import { connect } from '../../helpers/mcp/clients.ts'
import { proves } from '../../helpers/proves.ts'
import { startScripts } from '../../helpers/vmcp/scripts.ts'
import { bareNames, startTestVmcp } from '../../helpers/vmcp/vmcp.ts'

const TOOL = 'execute_tool_script'
async function rig(t: Test) {
  const fixture = await startFixture()
  const vmcp = await startTestVmcp(
    { fixture: fixture.url },
    { aggregation: bareNames('fixture'), codeMode: { enabled: true, stepLimit: 3_000_000 } },
  )
  const [villain, victim] = await Promise.all([connect('sdk1', vmcp.url), connect('sdk1', vmcp.url)])
  t.teardown(async () => {
    await Promise.all([villain.close(), victim.close()])
    await Promise.all([vmcp.close(), fixture.close()])
  })
  return { villain, victim }
}

const BOMBS: Readonly<Record<string, string>> = {
  'an endless loop': 'for i in range(1 << 40): pass',
  'an endless comprehension': 'x = [0 for i in range(1 << 40)]',
  'a text that doubles': 'x = "a"\nfor i in range(99): x = x + x',
  'a list that doubles': 'x = [1]\nfor i in range(99): x = x + x',
  'a list that takes itself in': 'x = [1]\nfor i in range(99): x.extend(x)',
  'a huge repeat': 'x = "a" * (1 << 30)',
  'a huge list': 'x = list(range(1 << 30))',
  'a list that contains itself': 'x = []\nx.append(x)\nreturn x',
  'a dict that contains itself': 'x = {}\nx["x"] = x\nreturn x',
  'a list that contains itself, compared': 'x = []\nx.append(x)\ny = []\ny.append(y)\nreturn x == y',
  'a value of great depth': 'x = []\nfor i in range(9000): x = [x]\nreturn x',
  'a value that branches into itself': 'x = [1]\nfor i in range(99): x = [x, x]\nreturn x',
  'a text of great depth': `return ${'('.repeat(40_000)}`,
  'a number without end': 'x = 3\nfor i in range(99): x = x * x',
  recursion: 'def f(): return f()\nf()',
  'recursion through a value': 'def f(g): return g(g)\nf(f)',
  'recursion side by side': 'def f(): return parallel([f, f])\nf()',
  'a million functions side by side': 'parallel([lambda: 1] * 1000000)',
  'a search without end': 'x = "a" * 4000000\nreturn (x + "b").find(x[1:] + "b" + x)',
  'a flood of logs': 'for i in range(99999): print("x" * 9999)',
  'a key of great size': 'x = (1,)\nfor i in range(60): x = (x, x)\nreturn {x: 1}',
  'a format that grows': 'x = "{0}{0}"\nfor i in range(99): x = x.format(x)',
}

t.test('hostile scripts: each ends in an error, and other requests are answered meanwhile', async (t) => {
  proves('3.endpoint.execute-tool-script.limits')
  const { villain, victim } = await rig(t)
  for (const [name, script] of Object.entries(BOMBS)) {
    const attack = villain.callText(TOOL, { script })
    t.match(await victim.callText('test_simple_text'), 'simple text', name)
    t.match(await attack, /^!script execution failed: /, name)
    t.match(await victim.callText(TOOL, { script: 'return echo(still=1)' }), '{"still":1}', name)
  }
})

t.test("endless steps: the script's deadline ends it, and the server continues", async (t) => {
  const { run } = startScripts(t, { stepLimit: 1e15, scriptTimeoutMs: 4_000, maxBytes: 1e15 })
  await run('return "the worker is there"')
  const spinning = run('print("on")\nfor i in range(1 << 50): pass')
  t.match(await run('return tool(a=1)'), '{"a":1}', 'another script ends while the first one spins')
  t.match(await spinning, /script execution failed: the script took longer than 4s.*Script logs:\\non/)
})

t.test('uncounted memory: the heap of the worker is bounded', async (t) => {
  const { run } = startScripts(t, { stepLimit: 1e15, maxBytes: 1e15 })
  t.match(await run('x = []\nfor i in range(1 << 50): x.append([i, i])'), /the script ran out of memory/)
  t.match(await run('return tool(a=2)'), '{"a":2}', 'the next script has a new worker')
})

t.test('a script that only waits is ended at its deadline, together with its call', async (t) => {
  const aborted = Promise.withResolvers<unknown>()
  const { run } = startScripts(t, { scriptTimeoutMs: 4_000 }, ({ context: { signal } }) => {
    return new Promise((_, reject) => {
      signal.addEventListener('abort', () => {
        aborted.resolve(signal.reason)
        reject(new Error('aborted'))
      })
    })
  })
  await run('return "the worker is there"')
  t.match(await run('return tool()'), /took longer than 4s/)
  t.ok(await aborted.promise)
})

t.test('closing: running scripts end, and no new one starts', async (t) => {
  const { run, feature } = startScripts(t, { stepLimit: 1e15, scriptTimeoutMs: 20_000 })
  const spinning = t.rejects(run('for i in range(1 << 50): pass'), { code: 'SHUTTING_DOWN' })
  await run('return 1')
  await feature.close()
  await spinning
  await t.rejects(run('return 1'), { code: 'SHUTTING_DOWN' })
})

t.test('questions: scripts that wait for answers do not block other scripts', async (t) => {
  const responses: ((value: { result: Buffer }) => void)[] = []
  const asked = Promise.withResolvers<void>()
  const ask: OperationContext['ask'] = () =>
    new Promise((resolve) => {
      responses.push(resolve)
      if (responses.length === 4) asked.resolve()
    })
  const { run } = startScripts(t, {}, async (operation) => {
    const reply = await operation.context.ask({ method: 'elicitation/create', params: undefined })
    return resultOutcome({ content: [{ type: 'text', text: reply.result?.toString() ?? '' }] })
  })
  // More scripts than workers, because each frees its slot while it waits.
  const waiting = [1, 2, 3, 4].map((i) => run(`return [tool(), ${i}]`, { ask }))
  await asked.promise
  t.match(await run('return "others go on"'), /others go on/)
  t.match(await run('return tool()', { ask }), /too many scripts are waiting for user responses/)
  for (const response of responses) response({ result: Buffer.from('"yes"') })
  t.match(
    await Promise.all(waiting),
    [1, 2, 3, 4].map((i) => `[\\"yes\\",${i}]`),
  )
})
