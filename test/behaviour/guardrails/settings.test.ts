/** Guardrail settings that are invalid or match nothing, `gatehouse explain`, and a changed configuration. */
import t from 'tap'
import { validateResource } from '../../../hooks/index.ts'
import { explain } from '../../../runtime/tools/explain/index.ts'
import { allWarnings, checkAll, snapshotOffline, startWarnings } from '../../../runtime/vmcp/index.ts'
import { startRawBackend, textResult } from '../../helpers/mcp/raw-backend.ts'
import { stateless } from '../../helpers/mcp/wire.ts'
import { until } from '../../helpers/redis.ts'
import { startGuardrailRig } from '../../helpers/vmcp/guardrails/rig.ts'
import { bareNames, startTestVmcp, vmcpConfig } from '../../helpers/vmcp/vmcp.ts'

const mail = { name: 'mail', patterns: ['email'] }
const broken = ['(', '(?=a)', '\\1', 'a*', '(?:a{1,100}){100}', '\\p{Nope}']

const manifest = (guardrails: unknown, more: object = {}) => ({
  apiVersion: 'gatehouse.dev/v1beta1',
  kind: 'VirtualMCPServer',
  metadata: { name: 'door', namespace: 'team' },
  spec: { groupRef: { name: 'tools' }, incomingAuth: { type: 'anonymous' }, config: { guardrails, ...more } },
})

t.test('all invalid expressions are reported at once, with their path', async (t) => {
  const guardrails = { redact: [mail, { name: 'own', expressions: broken }] }
  const { violations } = validateResource(manifest(guardrails))
  t.same(
    violations.map(({ path }) => path),
    broken.map((_, i) => `spec.config.guardrails.redact[1].expressions[${i}]`),
  )
  t.match(violations[3]?.message, 'matches the empty string')
  const config = vmcpConfig({ raw: 'http://127.0.0.1:9/mcp' }, { guardrails })
  t.throws(
    () => checkAll(config, { env: {} }),
    /guardrails\.redact\[1\]\.expressions\[0\].*expressions\[5\]/s,
  )
  const large = Array.from({ length: 16 }, (_, i) => `[a-z]{1,90}${i}`)
  const rules = Array.from({ length: 32 }, (_, i) => ({ name: `r${i}`, expressions: large }))
  const together = validateResource(manifest({ redact: rules }))
  t.match(together.violations, [{ message: /expressions of all rules up to this one are too large/ }])
  t.equal(together.violations.length, 1, 'later expressions are not compiled')
  const twice = validateResource(manifest({ redact: [mail, mail] }))
  t.match(twice.violations, [{ path: 'spec.config.guardrails.redact[1]' }], 'a name must be unique')
})

t.test('settings without a match are reported: unknown backends, exceptions without effect', async (t) => {
  const guardrails = {
    redact: [
      {
        ...mail,
        match: { backends: ['raw', 'rwa'] },
        except: [{ backends: ['other'] }, { pointers: ['/arguments/to', '/content'] }],
      },
    ],
  }
  const config = vmcpConfig(
    { raw: 'http://127.0.0.1:9/mcp', other: 'http://127.0.0.1:9/mcp' },
    { guardrails },
  )
  t.match(
    allWarnings(config, { env: {} }).join('\n'),
    /guardrails\.redact\[0\]\.match\.backends\[1\]: unknown backend "rwa"/,
  )
  const idle = [
    /redact\[0\]\.except\[0\]\.backends: none of these names is in match\.backends/,
    /redact\[0\]\.except\[1\]\.pointers\[0\]: the rule applies to results only/,
  ]
  const told = [startWarnings(config, { env: {} }), validateResource(manifest(guardrails)).warnings]
  for (const warnings of told) {
    t.equal(warnings.filter((one) => one.includes('guardrails')).length, 2)
    for (const line of idle) t.match(warnings.join('\n'), line)
  }
})

t.test('size rules: names of backends, exceptions without effect, names of rules', async (t) => {
  const guardrails = {
    redact: [mail],
    sizes: [
      { name: 'all', maxResultBytes: 1_000, match: { backends: ['raw'] }, except: [{ backends: ['other'] }] },
      { name: 'mail', maxArgumentBytes: 1_000, match: { backends: ['rwa'] } },
    ],
  }
  const backends = { raw: 'http://127.0.0.1:9/mcp', other: 'http://127.0.0.1:9/mcp' }
  const config = vmcpConfig(backends, { guardrails })
  t.match(
    allWarnings(config, { env: {} }).join('\n'),
    /guardrails\.sizes\[1\]\.match\.backends\[0\]: unknown backend "rwa"/,
  )
  const { violations } = validateResource(manifest(guardrails))
  const { warnings } = validateResource(manifest({ sizes: guardrails.sizes.slice(0, 1) }))
  const path = 'spec.config.guardrails.sizes[1].name'
  t.match(violations, [{ path, message: 'duplicate name: a rule in redact has the same name' }])
  t.equal(violations.length, 1)
  for (const lines of [startWarnings(config, { env: {} }), warnings])
    t.match(lines.join('\n'), /sizes\[0\]\.except\[0\]\.backends: none of these names is in match\.backends/)
})

t.test('a size limit that no result can reach causes a warning', async (t) => {
  const sizes = [
    { name: 'large', maxResultBytes: 2_000_000 },
    { name: 'same', maxResultBytes: 1_048_576 },
    { name: 'other', maxArgumentBytes: 2_000_000 },
  ]
  const operational = { maxResultBytes: 1_048_576 }
  const config = { guardrails: { sizes }, operational }
  const told = 'guardrails.sizes[0].maxResultBytes: exceeds operational.maxResultBytes (1048576)'
  const warnings = startWarnings(vmcpConfig({}, config), { env: {} })
  t.equal(warnings.length, 1)
  t.match(warnings, [told])
  t.same(
    startWarnings(vmcpConfig({}, { guardrails: { sizes } }), { env: {} }),
    [],
    'without one of operational',
  )
  const admitted = validateResource(manifest({ sizes }, { operational })).warnings
  t.equal(admitted.length, 1)
  t.match(admitted, [told])
})

t.test('tool names that no backend offers are reported once its tools are known', async (t) => {
  const tools = ['one', 'two'].map((name) => JSON.stringify({ name, inputSchema: { type: 'object' } }))
  const backend = await startRawBackend({ tools: () => tools })
  t.teardown(() => backend.close())
  const guardrails = {
    redact: [
      { ...mail, match: { tools: ['one', 'oen', 'flow'] }, except: [{ backends: ['raw'], tools: ['to'] }] },
      { name: 'down', patterns: ['jwt'], match: { backends: ['down'], tools: ['any'] } },
      { name: 'raw', patterns: ['jwt'], match: { backends: ['raw'], tools: ['two', 'tow'] } },
    ],
  }
  const sizes = [{ name: 'size', maxResultBytes: 1_000, match: { tools: ['one', 'noe'] } }]
  const steps = [{ id: 'a', type: 'tool', tool: 'one', arguments: {} }]
  const flow = { name: 'flow', description: 'f', parameters: { type: 'object' }, steps }
  const start = async (backends: Record<string, string>, redact: readonly unknown[]) => {
    const rig = await startGuardrailRig(t, backends, { redact, sizes }, { compositeTools: [flow] })
    await (await rig.as('stateless'))('tools/list')
    const told = () =>
      [...rig.log().matchAll(/"problem":"((?:[^"\\]|\\.)*)"/g)].map(([, text = '']) =>
        text.replaceAll('\\', ''),
      )
    await until(() => told().some((line) => line.includes('"tow"')))
    return { rig, told: told().filter((line) => line.includes('tool')) }
  }
  const [first, down, third] = guardrails.redact
  const alone = await start({ raw: backend.url }, [first, third])
  const problems = [
    'guardrails.redact[0].match.tools[1]: no backend offers a tool "oen"',
    'guardrails.redact[0].except[0].tools[0]: backend raw does not offer a tool "to"',
    'guardrails.redact[1].match.tools[1]: backend raw does not offer a tool "tow"',
    'guardrails.sizes[0].match.tools[1]: no backend offers a tool "noe"',
  ]
  t.same(alone.told, problems)
  const status = await alone.rig.status()
  for (const line of problems) t.match(status, JSON.stringify(line).slice(1, -1))
  const both = { raw: backend.url, down: 'http://127.0.0.1:9/mcp' }
  t.same((await start(both, [third, first, down])).told, [
    'guardrails.redact[0].match.tools[1]: backend raw does not offer a tool "tow"',
    'guardrails.redact[1].except[0].tools[0]: backend raw does not offer a tool "to"',
  ])
})

t.test('explain lists the rules that apply to a tool, in order', async (t) => {
  const config = vmcpConfig(
    { github: 'http://127.0.0.1:9/mcp' },
    {
      guardrails: {
        redact: [
          { ...mail, except: [{ pointers: ['/content/0'] }] },
          { name: 'elsewhere', patterns: ['jwt'], match: { backends: ['jira'] } },
          {
            name: 'keys',
            patterns: ['apiKey'],
            direction: 'both',
            action: 'refuse',
            match: { tools: ['search'] },
          },
          { name: 'left', patterns: ['iban'], except: [{ tools: ['search'] }] },
        ],
        sizes: [
          { name: 'all', maxResultBytes: 9_000, maxArgumentBytes: 500 },
          { name: 'small', maxResultBytes: 1_000, match: { backends: ['github'] } },
          { name: 'none', maxResultBytes: 300, except: [{ tools: ['search'] }] },
        ],
        mark: [
          { name: 'hidden', hiddenCharacters: 'strip' },
          { name: 'source', delimiters: true },
          { name: 'second', delimiters: true },
        ],
      },
    },
  )
  const tools = [JSON.stringify({ name: 'search', inputSchema: { type: 'object' } })]
  const snapshot = snapshotOffline(config, { github: { tools, health: 'healthy' } })
  const { steps, decision } = await explain(snapshot, {
    action: 'call_tool',
    name: 'github_search',
    claims: {},
  })
  t.equal(decision, 'allow')
  t.same(steps.find(({ stage }) => stage === 'guardrail')?.details, [
    'arguments: all (at most 500 bytes)',
    'arguments: keys (refuse)',
    'results: small (at most 1000 bytes)',
    'results: hidden (hidden characters are removed)',
    'results: mail (mask, with exceptions by pointer)',
    'results: keys (refuse)',
    'results: source (delimiters)',
  ])
})

t.test('a changed configuration takes effect with the next call', async (t) => {
  const backend = await startRawBackend({ responses: { 'tools/call': () => textResult('ada@example.com') } })
  const settings = (guardrails?: unknown) => ({
    aggregation: bareNames('raw'),
    ...(guardrails ? { guardrails } : {}),
  })
  const vmcp = await startTestVmcp({ raw: backend.url }, settings())
  t.teardown(() => Promise.all([vmcp.close(), backend.close()]))
  const call = async () => (await stateless(vmcp.url, 'tools/call', { name: 'echo' })).text
  t.match(await call(), 'ada@example.com')
  vmcp.reload(vmcpConfig({ raw: backend.url }, settings({ redact: [mail] })))
  t.match(await call(), '[redacted:mail]')
  vmcp.reload(vmcpConfig({ raw: backend.url }, settings({ redact: [{ ...mail, action: 'refuse' }] })))
  t.match(await call(), 'result withheld by guardrail mail')
  const sizes = [{ name: 'small', maxArgumentBytes: 64, maxResultBytes: 256 }]
  vmcp.reload(vmcpConfig({ raw: backend.url }, settings({ sizes })))
  t.match(await call(), 'ada@example.com', 'no earlier rule is left')
  const source = { name: 'source', delimiters: true }
  vmcp.reload(vmcpConfig({ raw: backend.url }, settings({ mark: [source] })))
  t.match(await call(), 'tool-output backend')
  vmcp.reload(vmcpConfig({ raw: backend.url }, settings({ mark: [{ ...source, match: { tools: ['x'] } }] })))
  t.notMatch(await call(), 'tool-output')
  vmcp.reload(vmcpConfig({ raw: backend.url }, settings()))
  t.match(await call(), 'ada@example.com')
})
