/** Guardrails on results, in both eras: mask, refuse and observe, the places that they cover, and their reports. */
import t from 'tap'
import { startFixture } from '../../helpers/mcp/fixture-server/index.ts'
import { startRawBackend, textResult } from '../../helpers/mcp/raw-backend.ts'
import { eras } from '../../helpers/decisions/decision-rig.ts'
import { startGuardrailRig } from '../../helpers/vmcp/guardrails/rig.ts'

const email = 'ada@example.com'
const key = `ghp_${'a1B2'.repeat(9)}`
const secrets = { name: 'secrets', patterns: ['apiKey', 'privateKey', 'jwt'] }
const mail = { name: 'mail', patterns: ['email'] }

for (const era of eras) {
  for (const backend of ['session', 'stateless'] as const) {
    t.test(
      `${era} client, ${backend} backend: texts are masked and reported by rule and count`,
      async (t) => {
        const fixture = await startFixture({ era: backend })
        t.teardown(() => fixture.close())
        const rig = await startGuardrailRig(t, { fixture: fixture.url }, { redact: [secrets, mail] })
        const ask = await rig.as(era)
        const { text } = await ask('tools/call', {
          name: 'echo',
          arguments: { a: `${email} ${key}`, b: email },
        })
        t.match(text, /\[redacted:mail\] \[redacted:secrets\]/)
        t.notMatch(text, email)
        t.notMatch(text, key)
        t.match((await ask('tools/call', { name: 'test_simple_text' })).text, 'simple text response')
        t.match(
          await rig.metrics(),
          /gatehouse_guardrail_matches_total\{.*rule="mail".*outcome="masked".*\} 2/,
        )
        const [line] = await rig.audited(1)
        t.match(line, {
          outcome: 'success',
          guardrails: [
            { rule: 'secrets', direction: 'results', outcome: 'masked', count: 1 },
            { rule: 'mail', direction: 'results', outcome: 'masked', count: 2 },
          ],
        })
        t.equal((await rig.audited(1)).length, 1, 'without a match there is no report')
        t.match(rig.log(), /"event":"guardrail_matched".*"rule":"mail"/)
        t.notMatch(rig.log(), key)
      },
    )
  }

  t.test(
    `${era} era: a rejection is a tool result with an error, and a protocol error for other requests`,
    async (t) => {
      const backend = await startRawBackend({
        capabilities: '{"tools":{},"resources":{},"prompts":{}}',
        tools: () => ['{"name":"echo","inputSchema":{"type":"object"}}'],
        responses: {
          'tools/call': ({ params }) =>
            (params['arguments'] as { key?: boolean }).key
              ? JSON.stringify({ content: [], structuredContent: { [email]: 1 } })
              : textResult(`see ${key}`),
          'resources/list': () => '{"resources":[{"uri":"test://r","name":"r"}]}',
          'resources/read': () => JSON.stringify({ contents: [{ uri: 'test://r', text: key }] }),
          'prompts/list': () => '{"prompts":[{"name":"p"}]}',
          'prompts/get': () =>
            JSON.stringify({
              messages: [{ role: 'user', content: { type: 'text', text: `mail ${email}` } }],
            }),
        },
      })
      t.teardown(() => backend.close())
      const rig = await startGuardrailRig(
        t,
        { raw: backend.url },
        { redact: [{ ...secrets, action: 'refuse' }, mail] },
      )
      const ask = await rig.as(era)
      const refused = await ask('tools/call', { name: 'echo', arguments: {} })
      t.match(refused.response?.result, {
        isError: true,
        content: [{ type: 'text', text: 'result withheld by guardrail secrets' }],
      })
      t.notMatch(refused.text, key)
      const named = await ask('tools/call', { name: 'echo', arguments: { key: true } })
      t.match(named.response?.result, {
        isError: true,
        content: [{ text: 'result withheld by guardrail mail' }],
      })
      const read = await ask('resources/read', { uri: 'test://r' })
      t.match(read.response?.error, { code: 403, message: 'result withheld by guardrail secrets' })
      t.notMatch(read.text, key)
      t.match((await ask('prompts/get', { name: 'p' })).text, 'mail [redacted:mail]')
      await ask('ping')
      t.match(
        (await rig.audited(4)).map(({ metadata }) => metadata.extra['denial_reason']),
        ['guardrail_refused', 'guardrail_refused', 'guardrail_refused', undefined],
      )
    },
  )
}

t.test(
  'structured content is masked along with its text, and a value that no longer fits its schema is an error',
  async (t) => {
    const tool = {
      name: 'who',
      inputSchema: { type: 'object' },
      outputSchema: {
        type: 'object',
        properties: {
          owner: { type: 'string' },
          mail: { type: 'string', format: 'email', pattern: '^[^\\[]*$' },
        },
      },
    }
    const backend = await startRawBackend({
      tools: () => [JSON.stringify(tool)],
      responses: {
        'tools/call': ({ params }) => {
          const structuredContent = params['arguments']
          return JSON.stringify({
            content: [{ type: 'text', text: JSON.stringify(structuredContent) }],
            structuredContent,
          })
        },
      },
    })
    t.teardown(() => backend.close())
    const rig = await startGuardrailRig(t, { raw: backend.url }, { redact: [mail] })
    for (const era of eras) {
      const ask = await rig.as(era)
      const call = (args: unknown) => ask('tools/call', { name: 'who', arguments: args })
      t.match((await call({ owner: `by ${email}` })).response?.result, {
        content: [{ text: '{"owner":"by [redacted:mail]"}' }],
        structuredContent: { owner: 'by [redacted:mail]' },
      })
      const broken = await call({ mail: email })
      t.match(broken.response?.result, {
        isError: true,
        content: [{ text: /does not match the tool's output schema/ }],
      })
      t.notOk(broken.response?.result?.['structuredContent'])
      t.notMatch(broken.text, email)
    }
  },
)

t.test('error texts of a backend are checked, and observe only counts', async (t) => {
  const backend = await startRawBackend({
    responses: {
      'tools/call': ({ id, res }) => {
        res.writeHead(200, { 'content-type': 'application/json' })
        res.end(
          `{"jsonrpc":"2.0","id":${id},"error":{"code":-32000,"message":"no ${email}","data":{"who":"${key}"}}}`,
        )
        return undefined
      },
    },
  })
  t.teardown(() => backend.close())
  const rig = await startGuardrailRig(
    t,
    { raw: backend.url },
    { redact: [mail, { ...secrets, action: 'observe' }] },
  )
  const ask = await rig.as('stateless')
  const { response } = await ask('tools/call', { name: 'echo' })
  t.match(response?.error, { code: -32000, message: 'no [redacted:mail]', data: { who: key } })
  await ask('ping')
  t.match((await rig.audited(1))[0]?.guardrails, [
    { rule: 'mail' },
    { rule: 'secrets', outcome: 'observed', count: 1 },
  ])
})

t.test(
  'rules and exceptions use the backend and the original name, whatever name the client uses',
  async (t) => {
    const result = textResult(`to ${email}`)
    const backends = await Promise.all(
      ['a', 'b'].map(() =>
        startRawBackend({
          tools: () =>
            ['one', 'two'].map((name) => JSON.stringify({ name, inputSchema: { type: 'object' } })),
          responses: { 'tools/call': () => result },
        }),
      ),
    )
    t.teardown(() => Promise.all(backends.map((backend) => backend.close())))
    const [a, b] = backends
    const rig = await startGuardrailRig(
      t,
      { a: a?.url ?? '', b: b?.url ?? '' },
      {
        redact: [
          {
            ...mail,
            match: { backends: ['a'] },
            except: [{ tools: ['two'] }, { backends: ['b'], tools: ['one'] }],
          },
          {
            ...mail,
            name: 'of-b',
            match: { backends: ['b'], tools: ['two'] },
            except: [{ pointers: ['/content/0/text'] }],
          },
        ],
      },
      {
        aggregation: {
          conflictResolution: 'prefix',
          conflictResolutionConfig: { prefixFormat: '{workload}_' },
          tools: [{ workload: 'a', overrides: { one: { name: 'two' }, two: { name: 'one' } } }],
        },
      },
    )
    const ask = await rig.as('stateless')
    const text = async (name: string) => (await ask('tools/call', { name })).text
    t.match(await text('a_two'), '[redacted:mail]', 'a/one')
    t.match(await text('a_one'), email, 'a/two')
    t.match(await text('b_one'), email)
    t.match(await text('b_two'), email, 'excepted by pointer')
  },
)

t.test('without settings, results pass byte for byte', async (t) => {
  const odd = `{ "content" : [ {"type":"text","text":"\\u0061 ${email} ${key}"} ] ,"x":1.0e400}`
  const backend = await startRawBackend({ responses: { 'tools/call': () => odd } })
  t.teardown(() => backend.close())
  for (const guardrails of [undefined, { redact: [{ ...mail, match: { tools: ['other'] } }] }]) {
    const rig = await startGuardrailRig(t, { raw: backend.url }, guardrails)
    const ask = await rig.as('session')
    t.match((await ask('tools/call', { name: 'echo' })).text, odd)
  }
})
